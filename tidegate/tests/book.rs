//! The parts that `docs/jobs.md` shows beside its whole job: a process function, and a sink of one's own, with the prelude alone.
//!
//! Owns: that they are written as the book says. Does not own: what the engine does with them. Runs on: the test's thread.
#![allow(clippy::unwrap_used, reason = "a test program")]

use tidegate::prelude::*;
use tidegate::testkit::JobHarness;

#[derive(Clone, Default)]
struct Longest {
    bytes: u64,
}

impl ProcessFunction<String, u64> for Longest {
    type State = u64;
    const HAS_ON_END: bool = true;

    fn process(&mut self, line: String, _event_time_ms: Option<i64>, _out: &mut Output<u64>) -> Result<()> {
        self.bytes = self.bytes.max(line.len() as u64);
        Ok(())
    }

    fn on_end(&mut self, out: &mut Output<u64>) -> Result<()> {
        out.emit(self.bytes);
        Ok(())
    }

    fn snapshot(&self) -> Vec<u64> {
        vec![self.bytes]
    }

    fn restore(&mut self, state: Vec<u64>) {
        self.bytes = state.into_iter().max().unwrap_or(0);
    }
}

#[derive(Clone)]
struct Webhook {
    url: String,
}

struct Posts {
    url: String,
}

impl Sink for Webhook {
    type Record = u64;
    type Writer = Posts;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Posts, ConnectorError>> + Send + use<> {
        let url = self.url.clone();
        async move { Ok(Posts { url }) }
    }
}

impl Writer for Posts {
    type Record = u64;

    async fn write(&mut self, batch: Batch<u64>) -> Result<(), ConnectorError> {
        let too_many = || ConnectorError::transient(format!("{} takes one at a time", self.url));
        if batch.values.len() > 1 { Err(too_many()) } else { Ok(()) }
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

fn build(env: &StreamEnvironment, input: &PathBuf) -> Result<()> {
    env.source("lines", FileSource::json_lines::<String>(input))
        .flat_map(|line: String| line.parse::<u64>().is_err().then_some(line))
        .name("words")
        .process_function("longest", Longest::default())
        .sink("webhook", Webhook { url: "http://localhost/".into() });
    Ok(())
}

#[test]
fn a_process_function_and_a_sink_of_ones_own_are_written_as_the_book_says() {
    let mut job = JobHarness::of(build, &PathBuf::from("in")).unwrap();
    let lines = job.source("lines");
    for line in ["a", "abc", "12345", "ab"] {
        lines.push(line.to_owned());
    }
    job.finish().unwrap();
    assert_eq!(job.sink::<u64>("webhook").records(), [3]);
}
