//! `orders demo` end to end: a kill in the middle, a restart, an audit of every row.
//!
//! Owns: that the demo works at parallelism 1 and 3.
//! Does not own: what it shows, which is tested beside it.
//! Runs on: the test thread; the job runs in processes.

mod scenario;

use scenario::{Scenario, stderr};

#[test]
fn the_demo_ends_with_all_zeros_at_parallelism_1_and_3() {
    let scenario = Scenario::with_orders();
    for parallelism in ["1", "3"] {
        let args = ["demo", "--orders", "6000", "--users", "200", "--rate", "15000", "--dir", "demo"];
        let mut command = scenario.orders(&args);
        let output =
            command.args(["--checkpoint-interval", "40ms", "--parallelism", parallelism]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{said}{}", stderr(&output));
        for words in ["  kill -9     at ", "  restored    from checkpoint ", "  exactly once: yes"] {
            assert!(said.contains(words), "no {words:?} in {said}");
        }
        assert!(scenario.path("demo/report.html").exists());
    }
}
