//! Tests of fault points: the list is true, names are checked, handlers are called and survive a panic.
//!
//! Owns: the scan of the workspace's sources.
//! Does not own: the kill itself, which scenario tests strike in child processes.
//! Runs on: the test threads.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::rc::Rc;

use super::*;
use crate::fault_point;

/// Every name that stands in a `fault_point!` somewhere in the workspace's sources, tests aside.
fn used_points(folder: &Path, used: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        let name = entry.file_name();
        let name = name.to_str().unwrap();
        if path.is_dir() && !["target", "tests"].contains(&name) && !name.starts_with('.') {
            used_points(&path, used);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            let text = std::fs::read_to_string(&path).unwrap();
            let calls = text.split("fault_point!(\"").skip(1);
            used.extend(calls.filter_map(|call| call.split_once('"')).map(|(point, _)| point.to_owned()));
        }
    }
}

fn used() -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    used_points(Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap(), &mut used);
    used
}

#[test]
fn each_used_point_is_listed() {
    let unlisted: Vec<_> = used().into_iter().filter(|point| point.contains('.')).collect();
    let unlisted: Vec<_> = unlisted.iter().filter(|point| !points::is_listed(point)).collect();
    assert!(unlisted.is_empty(), "used but not listed: {unlisted:?}");
}

#[test]
fn each_listed_point_is_used() {
    let used = used();
    let unused: Vec<_> = points::all().filter(|point| !used.contains(*point)).collect();
    assert!(unused.is_empty(), "listed but not used: {unused:?}");
}

#[test]
fn no_point_is_listed_twice() {
    assert_eq!(points::all().collect::<BTreeSet<_>>().len(), points::all().count());
}

#[test]
fn an_unknown_point_or_pass_is_refused() {
    assert_eq!(parse("storage.put.after").unwrap(), ("storage.put.after", NonZeroU64::MIN));
    assert_eq!(parse("ack.send.before:7").unwrap().1.get(), 7);
    let text = parse("storage.put").unwrap_err().to_string();
    assert!(text.contains("no fault point storage.put;") && text.contains("sink.commit.between"), "{text}");
    assert!(matches!(parse("ack.send.before:0"), Err(FaultError::BadPass { .. })));
    assert!(matches!(parse("ack.send.before:x"), Err(FaultError::BadPass { .. })));
}

#[test]
fn a_handler_sees_each_pass_of_its_thread_and_outlives_its_panic() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let log = seen.clone();
    set_handler(Some(Box::new(move |name| {
        log.borrow_mut().push(name);
        if name == "ack.send.after" {
            std::panic::resume_unwind(Box::new("crash"));
        }
    })));
    fault_point!("ack.send.before");
    let crash = catch_unwind(AssertUnwindSafe(|| fault_point!("ack.send.after"))).unwrap_err();
    assert_eq!(crash.downcast_ref::<&str>(), Some(&"crash"));
    fault_point!("ack.send.before");
    std::thread::spawn(|| fault_point!("storage.put.before")).join().unwrap();
    set_handler(None);
    fault_point!("storage.put.after");
    assert_eq!(*seen.borrow(), ["ack.send.before", "ack.send.after", "ack.send.before"]);
}
