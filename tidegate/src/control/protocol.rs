//! The words of the control protocol, version 1: a question is a line of JSON, an answer is another (RFC 0006).
//!
//! Owns: questions and answers, for both sides. Does not own: what an answer reports ([`super::report`]), sockets. Runs on: plain data.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::report::{CheckpointReport, EndReport, JobReport};

/// The version that this program speaks.
pub(crate) const VERSION: u64 = 1;

/// A question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ask {
    /// How does the job stand?
    Status,
    /// Its last checkpoints, newest first.
    Checkpoints,
    /// A checkpoint now; answered when it has ended.
    TriggerCheckpoint,
    /// Stop in order; answered when the job is over.
    Cancel,
}

/// A question on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) v: u64,
    pub(crate) ask: Ask,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// To `status`.
    Status {
        /// The job.
        job: JobReport,
    },
    /// To `checkpoints`.
    Checkpoints {
        /// Newest first.
        checkpoints: Vec<CheckpointReport>,
    },
    /// To `trigger_checkpoint`: complete or failed.
    Checkpoint {
        /// It.
        checkpoint: CheckpointReport,
    },
    /// To `cancel`, or to what came too late.
    Ended {
        /// How.
        #[serde(flatten)]
        end: EndReport,
    },
    /// It cannot be done.
    Refused {
        /// Why, in words.
        reason: String,
    },
}

/// An answer on its way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sealed {
    pub(crate) v: u64,
    #[serde(flatten)]
    pub(crate) answer: Answer,
}

/// A question from its line.
///
/// # Errors
/// Why it is none, in words that go back as [`Answer::Refused`].
pub(crate) fn read_question(line: &str) -> Result<Ask, String> {
    let value: Value =
        serde_json::from_str(line).map_err(|error| format!("this is no line of JSON: {error}"))?;
    match value.get("v").and_then(Value::as_u64) {
        Some(VERSION) => {}
        Some(other) => {
            let own = env!("CARGO_PKG_VERSION");
            return Err(format!(
                "tidegate {own} speaks version {VERSION} of the control protocol, and was asked in version {other}; use the \
                 `tidegate` that the job was built with"
            ));
        }
        None => return Err("a question has its version, as in {\"v\":1,\"ask\":\"status\"}".to_owned()),
    }
    let question: Result<Question, _> = serde_json::from_value(value);
    question.map(|question| question.ask).map_err(|error| format!("this is no question: {error}"))
}

/// The line of an answer.
pub(crate) fn write_answer(answer: Answer) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(&Sealed { v: VERSION, answer }).expect("an answer has only numbers and strings");
    line.push(b'\n');
    line
}

/// The line of a question.
pub(crate) fn write_question(ask: Ask) -> Vec<u8> {
    let mut line =
        serde_json::to_vec(&Question { v: VERSION, ask }).expect("a question has only numbers and strings");
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_have_the_documented_form() {
        let question = String::from_utf8(write_question(Ask::TriggerCheckpoint)).unwrap();
        assert_eq!(question, "{\"v\":1,\"ask\":\"trigger_checkpoint\"}\n");
        let ended = Answer::Ended { end: EndReport::Failed { error: "no disk".into() } };
        let line = String::from_utf8(write_answer(ended.clone())).unwrap();
        assert_eq!(line, "{\"v\":1,\"answer\":\"ended\",\"outcome\":\"failed\",\"error\":\"no disk\"}\n");
        assert_eq!(serde_json::from_str::<Sealed>(&line).unwrap().answer, ended);
    }

    #[test]
    fn what_is_no_question_of_this_version_is_refused_with_a_reason() {
        let refused = |line: &str| read_question(line).unwrap_err();
        assert!(refused("ping").contains("no line of JSON"));
        assert!(refused("{\"v\":2,\"ask\":\"status\"}").contains("asked in version 2"));
        assert!(refused("{\"ask\":\"status\"}").contains("has its version"));
        assert!(refused("{\"v\":1,\"ask\":\"explode\"}").contains("explode"));
        assert_eq!(read_question("{\"v\":1,\"ask\":\"cancel\"}"), Ok(Ask::Cancel));
    }
}
