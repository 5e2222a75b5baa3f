//! Folders with and without somebody who answers.
//!
//! Owns: the cases. Does not own: jobs (the scenario tests have real ones). Runs on: the test's thread.

use std::fs;
use std::os::unix::net::UnixListener;

use super::*;
use crate::control::{ControlServer, FsckHost, Host};

struct Named(&'static str);

impl Host for Named {
    fn answer(&self, ask: Ask, control: &[String]) -> Answer {
        let host = FsckHost { job: self.0.to_owned(), checkpoint_folder: "c".to_owned(), since_ms: 0 };
        match host.answer(ask, control) {
            Answer::Status { job } => Answer::Status { job: JobReport { state: JobState::Running, ..job } },
            other => other,
        }
    }
}

fn serve(folder: &Path) -> ControlServer {
    ControlServer::open(&[address_of(folder)], Named("orders")).unwrap()
}

#[test]
fn a_second_start_is_refused_until_the_first_has_gone() {
    let folder = tempfile::tempdir().unwrap();
    let first = serve(folder.path());
    let refused = refuse_if_alive(folder.path()).unwrap_err().to_string();
    let named = format!("job \"orders\", process {}", std::process::id());
    assert!(refused.contains(&named) && refused.contains("--take-over"), "{refused}");
    drop(first);
    assert!(!folder.path().join(NAME).exists());
    refuse_if_alive(folder.path()).unwrap();
}

#[test]
fn who_takes_over_keeps_the_socket_when_the_other_goes() {
    let folder = tempfile::tempdir().unwrap();
    let first = serve(folder.path());
    let _second = serve(folder.path());
    drop(first);
    assert!(refuse_if_alive(folder.path()).is_err());
}

#[test]
fn what_a_killed_process_left_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    drop(UnixListener::bind(folder.path().join(NAME)).unwrap());
    refuse_if_alive(folder.path()).unwrap();
    let _server = serve(folder.path());
    assert!(refuse_if_alive(folder.path()).is_err());
}

#[test]
fn a_file_that_is_no_socket_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(NAME), "mine").unwrap();
    assert!(ControlServer::open(&[address_of(folder.path())], Named("orders")).is_err());
    assert_eq!(fs::read_to_string(folder.path().join(NAME)).unwrap(), "mine");
}

#[test]
fn a_folder_with_a_long_path_has_its_socket_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let long = folder.path().join("x".repeat(120));
    fs::create_dir(&long).unwrap();
    let _first = serve(&long);
    assert!(refuse_if_alive(&long).is_err());
}

#[test]
fn a_check_is_told_from_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let host = FsckHost { job: "orders".to_owned(), checkpoint_folder: "c".to_owned(), since_ms: 0 };
    let _server = ControlServer::open(&[address_of(folder.path())], host).unwrap();
    assert!(matches!(refuse_if_alive(folder.path()), Err(ControlError::BeingChecked { .. })));
}

#[test]
fn what_listens_and_says_something_else_counts_as_alive() {
    let folder = tempfile::tempdir().unwrap();
    let listener = UnixListener::bind(folder.path().join(NAME)).unwrap();
    let thread = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut line = [0; 64];
        let _ = stream.read(&mut line).unwrap();
        stream.write_all(b"unknown question\n").unwrap();
    });
    let refused = refuse_if_alive(folder.path()).unwrap_err().to_string();
    assert!(refused.contains("does not say its name"), "{refused}");
    thread.join().unwrap();
}

#[test]
fn a_loopback_port_is_chosen_and_answers() {
    let wanted = "127.0.0.1:0".parse().unwrap();
    let server = ControlServer::open(&[wanted], Named("orders")).unwrap();
    let at = &server.addresses()[0];
    assert!(!at.to_string().ends_with(":0"));
    let Answer::Status { job } = ask_within(at, Ask::Status, PATIENCE).unwrap() else { panic!() };
    assert_eq!((job.job.as_str(), job.control), ("orders", vec![at.to_string()]));
}
