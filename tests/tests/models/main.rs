//! Exhaustive checks of small models of the laws.
//!
//! Each model is the law with everything else taken away, explored by `stateright` from its first state to its last. Where the engine
//! has a pure decision, the model asks the engine (restore walk, decision after a claim, read-back, cleaning plan, commit driver, owner
//! rule, trigger decision), so that the check is one of the code. Every model has knobs: each softens the law into a form that somebody
//! might build, and must be found broken; otherwise the model would not show anything.
//!
//! | module | law |
//! |---|---|
//! | [`commit_log`] | 4: claims, numbers, uncertain puts, restore walk, rewind, cleaner |
//! | [`recovery`] | 6: owner rule and sweep, under rescale and with attempts that never die |
//! | [`pending`] | 5: pending committables under abort and crash; places and row locks |
//! | [`end_of_data`] | 7: `on_end`, the last checkpoint, `finished` |
//!
//! Owns: the models and what they must show. Does not own: random schedules over the whole engine (the simulation does).
//! Runs on: the test's thread and one of the checker's. Run with `--nocapture` to see state counts and counterexamples.

mod check;
mod commit_log;
mod end_of_data;
mod pending;
mod recovery;
mod server;
