//! What it means that a model holds, breaks, or can always come to its goal.
//!
//! Owns: the calls of the checker, and readable output. Does not own: any model. Runs on: the test's thread.

use std::collections::HashMap;
use std::fmt::Display;
use std::hash::{BuildHasherDefault, DefaultHasher, Hash};
use std::sync::Arc;

use stateright::{Checker, HasDiscoveries, Model, Path, Property};

/// A model of a law: tells of each state whether the law is broken in it.
pub(crate) trait Law: Model<State: Display, Action: Display> {
    /// Why the law is broken in this state.
    fn broken(&self, state: &Self::State) -> Option<String>;
}

/// The property that [`Law::broken`] is nowhere true.
pub(crate) fn unbroken<M: Law>() -> Property<M> {
    Property::always(UNBROKEN, |model, state| model.broken(state).is_none())
}

const UNBROKEN: &str = "the law is unbroken";

/// A hash map without chance in it.
type FixedMap<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Explores every state, finds none in which the law is broken, and reaches everything that the model says it reaches.
pub(crate) fn holds<M>(title: &str, model: M)
where
    M: Law + Send + Sync + 'static,
    M::State: Hash + Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    if let Some(path) = checker.discovery(UNBROKEN) {
        panic!(
            "{title}: broken after {} states\n{}",
            checker.unique_state_count(),
            told(checker.model(), path)
        );
    }
    for property in checker.model().properties() {
        let name = property.name;
        let missed =
            property.expectation == stateright::Expectation::Sometimes && checker.discovery(name).is_none();
        assert!(!missed, "{title}: no schedule reaches \"{name}\", so the model shows less than it says");
    }
    println!(
        "{title}: clean, exhaustive, {} states, depth {}",
        checker.unique_state_count(),
        checker.max_depth()
    );
}

/// Finds a state in which the law is broken, and prints the shortest way to it.
pub(crate) fn breaks<M>(title: &str, model: M)
where
    M: Law + Send + Sync + 'static,
    M::State: Hash + Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static,
    M::Action: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static,
{
    let checker = model.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
    let states = checker.unique_state_count();
    let Some(path) = checker.discovery(UNBROKEN) else {
        panic!(
            "{title}: no schedule breaks this weaker form ({states} states): the law or the model is too strict"
        );
    };
    println!("{title}: broken, as it must be, after {states} states\n{}", told(checker.model(), path));
}

/// A path of actions, each with the state that it leads to, and what is wrong at its end.
fn told<M: Law>(model: &M, path: Path<M::State, M::Action>) -> String {
    let steps = path.into_vec();
    let wrong = steps.last().and_then(|(state, _)| model.broken(state)).unwrap_or_default();
    let mut lines = String::new();
    for (step, pair) in steps.windows(2).enumerate() {
        let Some(action) = &pair[0].1 else { continue };
        lines += &format!("  {:>2}. {action:<58} {}\n", step + 1, pair[1].0);
    }
    lines + "  => " + &wrong
}

/// Whether the goal can be reached from every state that can be reached.
pub(crate) enum Reachability {
    /// It can; the number of states.
    Always(usize),
    /// Not from some.
    Stuck {
        /// States in all.
        states: usize,
        /// How many of them are stuck.
        stuck: usize,
        /// How the nearest of them is come to.
        told: String,
    },
}

/// Explores every state, then walks back from those in which `goal` is true ("always possibly": the checker's own `eventually` does
/// not see a state that only goes round in circles).
pub(crate) fn always_possible<M>(model: &M, goal: impl Fn(&M::State) -> bool) -> Reachability
where
    M: Model<State: Display + Hash + Eq, Action: Display + Clone>,
{
    let graph = Graph::explore(model);
    let mut can = vec![false; graph.states.len()];
    let mut back: Vec<usize> = (0..graph.states.len()).filter(|s| goal(&graph.states[*s])).collect();
    back.iter().for_each(|s| can[*s] = true);
    while let Some(state) = back.pop() {
        for from in &graph.before[state] {
            if !std::mem::replace(&mut can[*from], true) {
                back.push(*from);
            }
        }
    }
    let states = graph.states.len();
    match can.iter().position(|can| !can) {
        None => Reachability::Always(states),
        Some(first) => Reachability::Stuck {
            states,
            stuck: can.iter().filter(|can| !**can).count(),
            told: graph.told(first),
        },
    }
}

/// Every state in the order of its distance, and who leads to whom.
struct Graph<S, A> {
    states: Vec<Arc<S>>,
    before: Vec<Vec<usize>>,
    /// For each state but the first: whence and by which action it was first reached.
    reached: Vec<Option<(usize, A)>>,
}

impl<S: Display + Hash + Eq, A: Display + Clone> Graph<S, A> {
    fn explore<M: Model<State = S, Action = A>>(model: &M) -> Self {
        let states: Vec<_> = model.init_states().into_iter().map(Arc::new).collect();
        let mut index: FixedMap<Arc<S>, usize> = states.iter().cloned().zip(0..).collect();
        let mut graph =
            Self { before: vec![Vec::new(); states.len()], reached: vec![None; states.len()], states };
        let mut next = 0;
        while next < graph.states.len() {
            let from = Arc::clone(&graph.states[next]);
            for (action, to) in model.next_steps(&from) {
                let at = *index.entry(Arc::new(to)).or_insert_with_key(|to| {
                    graph.states.push(Arc::clone(to));
                    graph.before.push(Vec::new());
                    graph.reached.push(Some((next, action)));
                    graph.states.len() - 1
                });
                graph.before[at].push(next);
            }
            next += 1;
        }
        graph
    }

    fn told(&self, mut state: usize) -> String {
        let mut lines = vec!["  => from here the goal is out of reach".to_owned()];
        while let Some((from, action)) = &self.reached[state] {
            lines.push(format!("  {action:<58} {}", self.states[state]));
            state = *from;
        }
        lines.reverse();
        lines.join("\n")
    }
}
