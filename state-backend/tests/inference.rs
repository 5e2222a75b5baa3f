//! The shape in which the engine takes closures over state compiles without a type on any argument but the record.
//!
//! Owns: that promise.
//! Does not own: the engine's operators.
//! Runs on: the test threads.

use tidegate_state::{
    KeyGroupRange, KeyedBackend, MaxParallelism, StateDeclaration, StateError, StateType, list, map, value,
};

struct Order {
    user: u64,
    cents: i64,
}

#[derive(Clone, Default, StateType)]
struct Totals {
    orders: u64,
    cents: i64,
}

struct Context<K>(K);

impl<K> Context<K> {
    fn key(&self) -> &K {
        &self.0
    }
}

struct Output<U>(Vec<U>);

impl<U> Output<U> {
    fn emit(&mut self, value: U) {
        self.0.push(value);
    }
}

/// A stream of orders by user, as far as this test needs one.
struct Keyed<T, K, F>(Vec<T>, F, std::marker::PhantomData<K>);

impl<T, K: StateType + Eq, KeyOf: Fn(&T) -> K> Keyed<T, K, KeyOf> {
    fn process<U, S, F>(self, states: S, mut f: F) -> Vec<U>
    where
        S: StateDeclaration<K>,
        F: for<'a> FnMut(T, S::Handles<'a>, &mut Context<K>, &mut Output<U>) -> Result<(), StateError>,
    {
        let max = MaxParallelism::default();
        let mut tables = states.open(&KeyedBackend::heap(KeyGroupRange::all(max), max));
        let mut output = Output(Vec::new());
        for record in self.0 {
            let mut context = Context((self.1)(&record));
            let key = context.0.clone();
            f(record, S::bind(&mut tables, &key, key.key_hash()), &mut context, &mut output)
                .expect("the heap backend does not fail");
        }
        output.0
    }
}

fn orders() -> Keyed<Order, u64, impl Fn(&Order) -> u64> {
    let orders = [(1, 250), (2, 7), (1, 100)].map(|(user, cents)| Order { user, cents });
    Keyed(orders.into(), |order: &Order| order.user, std::marker::PhantomData)
}

#[test]
fn one_state_and_untyped_arguments() {
    let totals = orders().process(value::<Totals>("totals"), |order, mut totals, context, output| {
        let totals = totals.update(|totals| {
            totals.orders += 1;
            totals.cents += order.cents;
        })?;
        output.emit((*context.key(), totals.orders, totals.cents));
        Ok(())
    });
    assert_eq!(totals, [(1, 1, 250), (2, 1, 7), (1, 2, 350)]);
}

#[test]
fn several_states_come_as_a_tuple() {
    let states = (value::<i64>("last"), list::<i64>("all"), map::<i64, u32>("by amount"));
    let seen = orders().process(states, |order: Order, (mut last, mut all, mut by_amount), _, output| {
        let before = last.set(order.cents)?;
        all.push(order.cents)?;
        let count = *by_amount.update(order.cents, |count| *count += 1)?;
        output.emit((before, all.len()?, count));
        Ok(())
    });
    assert_eq!(seen, [(None, 1, 1), (None, 1, 1), (Some(250), 2, 1)]);
}

#[test]
fn no_state_is_a_unit() {
    let cents = orders().process((), |order: Order, (), _, output: &mut Output<i64>| {
        output.emit(order.cents);
        Ok(())
    });
    assert_eq!(cents, [250, 7, 100]);
}
