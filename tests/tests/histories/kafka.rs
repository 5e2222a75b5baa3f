//! `kafka_transactions.json` on the broker model, with markers written at once and with markers that take their time.

use std::collections::BTreeMap;

use serde::Deserialize;
use tidegate_engine::broker::{BrokerCode, Producer};
use tidegate_engine::sim::broker::{Broker, BrokerSettings, GroupOffset, Reply, Request, TransactionState};

pub(super) const VERSIONS: [i16; 6] = [0, 1, 2, 3, 4, 5];
pub(super) const DEFAULT_TIMEOUT_MS: u64 = 60_000;
const TIMEOUT_MS_MAX: u64 = 900_000;

/// An offset of a ledger in which no attempts are noted.
fn noted(offset: u64) -> GroupOffset {
    GroupOffset { offset, note: 0 }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct History {
    #[serde(rename = "about")]
    _about: String,
    #[serde(rename = "asked")]
    _asked: String,
    pub(super) cases: Vec<Case>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Case {
    pub(super) name: String,
    #[serde(default)]
    pub(super) each_version: bool,
    pub(super) steps: Vec<Step>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Version {
    Number(i16),
    Each(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum Codes {
    Any(Vec<i16>),
    ByVersion(BTreeMap<String, Vec<i16>>),
}

impl Default for Codes {
    fn default() -> Self {
        Self::Any(vec![0])
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Epoch {
    pub(super) epoch: Option<i16>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "do", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Step {
    Init {
        producer: String,
        id: String,
        timeout_ms: Option<u64>,
        code: Option<i16>,
        #[serde(default)]
        expect: Epoch,
    },
    Begin {
        producer: String,
        partition: String,
        #[serde(default)]
        expect: Codes,
    },
    Produce {
        producer: String,
        partition: String,
        records: Vec<String>,
        #[serde(default)]
        expect: Codes,
    },
    Ledger {
        producer: String,
        group: String,
        offset: u64,
    },
    End {
        producer: String,
        commit: bool,
        version: Version,
        id: Option<String>,
        #[serde(default)]
        epoch_plus: i16,
        #[serde(default)]
        producer_id_plus: i64,
        expect: Codes,
    },
    Settle,
    Outlast {
        producer: String,
    },
    Offset {
        group: String,
        stable: bool,
        code: Option<i16>,
        #[serde(default)]
        expect: Option<u64>,
    },
    Read {
        partition: String,
        expect: Vec<String>,
    },
    List {
        expect: BTreeMap<String, String>,
    },
}

/// One run of one case.
struct Replay {
    broker: Broker<String, String>,
    marker_us: u64,
    now: u64,
    version: i16,
    producers: BTreeMap<String, (String, Producer, u64)>,
}

impl Replay {
    fn new(marker_us: u64, version: i16) -> Self {
        let settings = BrokerSettings { marker_us, timeout_us_max: TIMEOUT_MS_MAX * 1_000 };
        Self { broker: Broker::new(settings), marker_us, now: 0, version, producers: BTreeMap::new() }
    }

    fn producer(&self, name: &str) -> (String, Producer) {
        let (id, producer, _) = self.producers.get(name).unwrap();
        (id.clone(), *producer)
    }

    fn ask(&mut self, request: Request<String, String>) -> Reply<String> {
        self.broker.execute(request, self.now)
    }

    fn pass(&mut self, micros: u64) {
        self.now += micros;
        self.broker.settle(self.now);
    }

    fn expect_code(&mut self, request: Request<String, String>, expect: &Codes) {
        let asked = format!("{request:?}");
        let allowed = match expect {
            Codes::Any(codes) => codes,
            Codes::ByVersion(codes) => &codes[&self.version.to_string()],
        };
        let reply = self.ask(request);
        let Reply::Code(code) = reply else { panic!("{asked} is answered with {reply:?}") };
        assert!(allowed.contains(&code.0), "{asked} is answered with {code}, expected one of {allowed:?}");
    }

    /// As clients do: again for as long as the transaction before is being ended.
    fn initialise(&mut self, id: &str, timeout_us: u64) -> Reply<String> {
        for _ in 0..100 {
            let reply = self.ask(Request::Init { id: id.to_owned(), timeout_us });
            if reply != Reply::Code(BrokerCode::CONCURRENT_TRANSACTIONS) {
                return reply;
            }
            self.pass(1_000);
        }
        panic!("{id} is not initialised")
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Init { producer, id, timeout_ms, code, expect } => {
                let timeout_us = timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS) * 1_000;
                match (self.initialise(&id, timeout_us), code) {
                    (Reply::Code(is), Some(code)) => assert_eq!(is, BrokerCode(code)),
                    (Reply::Producer(is), None) => {
                        assert_eq!(is.epoch, expect.epoch.unwrap_or(is.epoch));
                        self.producers.insert(producer, (id, is, timeout_us));
                    }
                    (other, _) => panic!("{id}: {other:?}"),
                }
            }
            Step::Begin { producer, partition, expect } => {
                let (id, producer) = self.producer(&producer);
                self.expect_code(Request::AddPartition(id, producer, partition), &expect);
            }
            Step::Produce { producer, partition, records, expect } => {
                let (id, producer) = self.producer(&producer);
                self.expect_code(Request::Produce(id, producer, partition, records), &expect);
            }
            Step::Ledger { producer, group, offset } => {
                let (id, producer) = self.producer(&producer);
                let expect = Codes::default();
                self.expect_code(Request::AddOffsets(id.clone(), producer, group.clone()), &expect);
                self.expect_code(Request::CommitOffset(id, producer, group, noted(offset)), &expect);
            }
            Step::End { producer, commit, version, id, epoch_plus, producer_id_plus, expect } => {
                let (own, mut producer) = self.producer(&producer);
                producer.epoch += epoch_plus;
                producer.id += producer_id_plus;
                let version = match version {
                    Version::Number(version) => version,
                    Version::Each(each) => {
                        assert_eq!(each, "each");
                        self.version
                    }
                };
                let id = id.unwrap_or(own);
                self.expect_code(Request::End { id, producer, commit, version }, &expect);
            }
            Step::Settle => self.pass(2 * self.marker_us + 1),
            Step::Outlast { producer } => {
                let (_, _, timeout_us) = self.producers[&producer];
                self.pass(timeout_us + 1);
                self.pass(2 * self.marker_us + 1);
            }
            Step::Offset { group, stable, code, expect } => {
                let is = self.ask(Request::FetchOffset { group, require_stable: stable });
                let expect =
                    code.map_or(Reply::Offset(expect.map(noted)), |code| Reply::Code(BrokerCode(code)));
                assert_eq!(is, expect);
            }
            Step::Read { partition, expect } => {
                assert_eq!(self.broker.read_committed(&partition), expect.iter().collect::<Vec<_>>());
            }
            Step::List { expect } => {
                let Reply::Listed(listed) = self.ask(Request::List) else { panic!("no listing") };
                let listed = listed.into_iter().map(|(id, state)| (id, spelled(state).to_owned()));
                assert_eq!(listed.collect::<BTreeMap<_, _>>(), expect);
            }
        }
    }
}

fn spelled(state: TransactionState) -> &'static str {
    match state {
        TransactionState::Empty => "Empty",
        TransactionState::Ongoing => "Ongoing",
        TransactionState::Ending { commit: true, .. } => "PrepareCommit",
        TransactionState::Ending { commit: false, .. } => "PrepareAbort",
        TransactionState::Ended { commit: true } => "CompleteCommit",
        TransactionState::Ended { commit: false } => "CompleteAbort",
    }
}

#[test]
fn the_broker_model_answers_as_the_broker_did() {
    let history: History = super::read("kafka_transactions.json");
    let mut runs = 0;
    for case in &history.cases {
        let versions: &[i16] = if case.each_version { &VERSIONS } else { &VERSIONS[5..] };
        for (version, marker_us) in versions.iter().flat_map(|v| [(*v, 0), (*v, 10_000)]) {
            println!("{} (version {version}, markers after {marker_us} µs)", case.name);
            let mut replay = Replay::new(marker_us, version);
            for step in case.steps.clone() {
                println!("  {step:?}");
                replay.step(step);
            }
            runs += 1;
        }
    }
    assert!(history.cases.len() >= 30 && runs > 200, "{} cases, {runs} runs", history.cases.len());
}
