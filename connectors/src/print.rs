//! A sink that writes a line per record to standard output.
//!
//! Owns: the lines. Does not own: what a record looks like (its `Display` or `Debug`). Runs on: the I/O side, where it may block.

use std::fmt::{Debug, Display};
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_engine::api::{ConnectorContext, ConnectorError, Sink, Writer};
use tidegate_engine::element::Batch;
use tidegate_engine::io::{SharedIo, blocking};

/// Prints records, one a line.
pub struct PrintSink<T> {
    line: fn(&T) -> String,
    target: Target,
}

#[derive(Clone)]
enum Target {
    Stdout,
    /// Guards the destination, so that lines of several subtasks do not mix; held while one batch is written.
    Other(Arc<Mutex<Box<dyn Write + Send>>>),
}

impl<T: Debug> PrintSink<T> {
    /// Prints with `{:?}`.
    pub fn debug() -> Self {
        Self { line: |record| format!("{record:?}"), target: Target::Stdout }
    }
}

impl<T: Display> PrintSink<T> {
    /// Prints with `{}`.
    pub fn display() -> Self {
        Self { line: |record| record.to_string(), target: Target::Stdout }
    }
}

impl<T> PrintSink<T> {
    /// Writes to `destination` instead of standard output.
    #[must_use]
    pub fn to(mut self, destination: impl Write + Send + 'static) -> Self {
        self.target = Target::Other(Arc::new(Mutex::new(Box::new(destination))));
        self
    }
}

impl<T> Clone for PrintSink<T> {
    fn clone(&self) -> Self {
        Self { line: self.line, target: self.target.clone() }
    }
}

impl<T: Clone + Send + 'static> Sink for PrintSink<T> {
    type Record = T;
    type Writer = PrintWriter<T>;

    fn open(
        &self,
        context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<T> {
        std::future::ready(Ok(PrintWriter { sink: self.clone(), io: context.io }))
    }
}

/// Writer of a [`PrintSink`].
pub struct PrintWriter<T> {
    sink: PrintSink<T>,
    io: SharedIo,
}

impl<T: Clone + Send + 'static> PrintWriter<T> {
    async fn on_target(
        &self,
        work: impl FnOnce(&mut dyn Write) -> io::Result<()> + Send + 'static,
    ) -> Result<(), ConnectorError> {
        let target = self.sink.target.clone();
        let done = blocking(&self.io, move || match target {
            Target::Stdout => work(&mut io::stdout().lock()),
            Target::Other(other) => work(&mut *other.lock().unwrap_or_else(PoisonError::into_inner)),
        })
        .await
        .map_err(|gone| ConnectorError::transient("printing was cut short").caused_by(gone))?;
        done.map_err(|e| {
            ConnectorError::transient("a line could not be printed; is the reader gone?").caused_by(e)
        })
    }
}

impl<T: Clone + Send + 'static> Writer for PrintWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        let mut text = String::new();
        for record in &batch.values {
            text.push_str(&(self.sink.line)(record));
            text.push('\n');
        }
        self.on_target(move |out| out.write_all(text.as_bytes())).await
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        self.on_target(|out| out.flush()).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_record_is_a_line() {
        let page = Page::default();
        let sink = PrintSink::debug().to(page.clone());
        testing::run(async {
            let mut writer = sink.open(Bench::new().context(), 0).await.unwrap();
            writer.write(Batch::of(vec![Some(1), None])).await.unwrap();
            writer.flush().await.unwrap();
        });
        assert_eq!(*page.0.lock().unwrap(), b"Some(1)\nNone\n");
    }
}
