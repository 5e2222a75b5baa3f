//! The sink without transactions.

use super::*;

#[test]
fn a_plain_sink_writes_at_once_and_by_the_same_modes() {
    testing::run(async {
        for (sink, expected) in [
            (Scene::log as fn(&Scene) -> SqliteSink<Pair>, vec![(1, 1), (2, 2), (1, 3)]),
            (|scene| scene.log().overwrite_by("user_id"), vec![(1, 3), (2, 2)]),
            (|scene| scene.log().add_by("user_id"), vec![(1, 4), (2, 2)]),
        ] {
            let scene = Scene::new();
            let mut writer = sink(&scene).plain().open(scene.bench.context(), 0).await.unwrap();
            writer.write(Batch::of(vec![(1, 1), (2, 2)])).await.unwrap();
            writer.write(Batch::of(vec![(1, 3)])).await.unwrap();
            assert_eq!(scene.rows(), expected);
            assert_eq!(count(&scene.file(), "sqlite_schema WHERE name LIKE 'tidegate_%'"), 0);
        }
    });
}

#[test]
fn a_plain_sink_names_a_key_that_comes_twice() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().primary_key(["user_id"]).plain();
        let mut writer = sink.open(scene.bench.context(), 0).await.unwrap();
        writer.write(Batch::of(vec![(7, 1)])).await.unwrap();
        let error = writer.write(Batch::of(vec![(8, 1), (7, 2)])).await.unwrap_err();
        assert!(!error.restartable && error.message.contains("user_id = 7"), "{}", error.message);
        assert_eq!(scene.rows(), [(7, 1)]);
    });
}
