//! What is refused before anything runs, what fails a record, and in which words.

use std::io;
use std::time::Duration;

use tidegate_engine::api::ConnectorError;

use super::*;

fn refusal(sink: &impl TwoPhaseSink) -> String {
    let error = sink.validate().unwrap_err();
    assert!(!error.restartable || error.message.contains("cannot be written"));
    error.full_text()
}

async fn failure<T, E>(scene: &Scene, sink: &FileSink<T, E>, records: Vec<T>) -> ConnectorError
where
    T: Clone + Send + 'static,
    E: LineEncoder<T>,
{
    let mut writer = sink.open_writer(scene.context(name(0, 1), 1)).await.unwrap();
    writer.write(&name(0, 1), Batch::of(records)).await.unwrap_err()
}

#[test]
fn a_missing_folder_is_made_when_the_sink_writes_and_not_before() {
    testing::run(async {
        let scene = Scene::new();
        let sink = FileSink::text::<u64>(scene.out().join("deeper/still"));
        sink.validate().unwrap();
        assert!(!scene.out().exists(), "a look at the job makes no folder");
        assert!(files_below(scene.folder.path()).is_empty(), "and leaves nothing of its trial");
        let mut writer = sink.open_writer(scene.context(name(0, 1), 1)).await.unwrap();
        writer.write(&name(0, 1), Batch::of(vec![1])).await.unwrap();
        writer.prepare().await.unwrap();
        assert!(scene.out().join("deeper/still/.tidegate").is_dir());
    });
}

#[test]
fn a_file_in_place_of_the_folder_or_above_it_is_refused_by_name() {
    let scene = Scene::new();
    fs::write(scene.out(), "x").unwrap();
    let (here, below) = (scene.out(), scene.out().join("a/b"));
    for folder in [&here, &below] {
        let text = refusal(&FileSink::text::<u64>(folder));
        let words =
            format!("the output folder {} cannot be: {} is not a folder", folder.display(), here.display());
        assert!(text.contains(&words), "{text}");
    }
}

#[test]
fn a_folder_that_takes_no_files_is_refused_by_name_at_submit() {
    // Nobody may make a file in /proc, root included.
    let text = refusal(&FileSink::text::<u64>("/proc/self/task"));
    assert!(text.contains("the output folder /proc/self/task cannot be written by this user"), "{text}");
}

#[test]
fn a_folder_without_the_right_to_write_is_refused_with_the_remedy() {
    for kind in [io::ErrorKind::PermissionDenied, io::ErrorKind::ReadOnlyFilesystem] {
        let (folder, path) = (Path::new("/data/out"), Path::new("/data/out/x"));
        let error = FileSinkError::of(folder, "making", path, io::Error::from(kind));
        let text = error.to_string();
        let words = "the output folder /data/out cannot be written by this user (making /data/out/x); change its permissions";
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let scene = Scene::new();
    let zero = "would never let a part grow";
    for (sink, words) in [
        (scene.sink().roll_at_bytes(0), "a size of 0"),
        (scene.sink().roll_after(Duration::ZERO), "an age of 0"),
        (scene.sink().open_buckets_max(0), "a number of open buckets of 0"),
    ] {
        let text = refusal(&sink);
        assert!(text.contains(words) && text.contains(zero), "{text}");
    }
}

#[derive(Clone)]
struct Odd(&'static str);

impl LineEncoder<u64> for Odd {
    type Error = std::fmt::Error;

    fn extension(&self) -> &str {
        self.0
    }

    fn encode(&self, record: &u64, _line: &mut Vec<u8>) -> Result<(), std::fmt::Error> {
        if *record == 3 { Err(std::fmt::Error) } else { Ok(()) }
    }
}

#[test]
fn an_extension_that_is_part_of_a_path_is_refused() {
    let scene = Scene::new();
    for extension in ["", "a/b", ".txt", "txt.", "a~b", "12345678901234567"] {
        let text = refusal(&FileSink::with_encoder(scene.out(), Odd(extension)));
        assert!(text.contains("the extension"), "{text}");
    }
    FileSink::with_encoder(scene.out(), Odd("csv.gz")).validate().unwrap();
}

#[test]
fn a_record_without_a_line_fails_the_job_for_good_and_is_named() {
    testing::run(async {
        let scene = Scene::new();
        let error = failure(&scene, &FileSink::with_encoder(scene.out(), Odd("x")), vec![1, 2, 3]).await;
        assert!(!error.restartable);
        let text = error.full_text();
        assert!(text.contains("record 3 of this subtask") && text.contains("cannot be encoded"), "{text}");
    });
}

#[test]
fn a_line_break_inside_a_line_is_refused_because_it_would_be_two_records() {
    testing::run(async {
        let scene = Scene::new();
        let lines = vec!["fine".to_owned(), "a\nb".to_owned()];
        let error = failure(&scene, &FileSink::text::<String>(scene.out()), lines.clone()).await;
        assert!(!error.restartable && error.message.contains("record 2"), "{}", error.message);
        let json = FileSink::json_lines::<String>(scene.out());
        let mut writer = json.open_writer(scene.context(name(5, 1), 1)).await.unwrap();
        writer.write(&name(5, 1), Batch::of(lines)).await.unwrap();
        assert_eq!(writer.prepare().await.unwrap().unwrap().parts[0].records, 2);
    });
}

#[test]
fn a_bucket_that_is_no_simple_folder_name_fails_the_job_for_good_and_leaves_the_folder() {
    testing::run(async {
        for bucket in ["../x", "a/b", "", ".tidegate"] {
            let scene = Scene::new();
            let sink = scene.sink().bucket_by(move |_| bucket.to_owned());
            let error = failure(&scene, &sink, vec![1]).await;
            assert!(!error.restartable);
            let text = error.full_text();
            assert!(text.contains(&format!("the bucket {bucket:?} is no simple folder name")), "{text}");
            assert!(files_below(scene.folder.path()).is_empty());
        }
    });
}
