//! A reader of standard output who has seen enough.

use crate::scene::Scene;

#[test]
fn a_command_whose_reader_is_gone_does_its_work_and_ends_with_the_status_of_that() {
    let scene = Scene::new();
    for args in [&["list"][..], &["list", "--json"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = scene.tidegate_command(args).stdout(writer).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
        assert_eq!(ended.status.code(), Some(0));
    }
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let explained = scene.job_binary(&["explain"]).stdout(writer).output().unwrap();
    assert_eq!((explained.status.code(), String::from_utf8_lossy(&explained.stderr).as_ref()), (Some(0), ""));
}
