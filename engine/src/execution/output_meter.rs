//! Records out per record in of the sinks, over the last minute.
//!
//! *Out* is what a sink's subtasks have handed to their connector, in every attempt of this process. *In* is the same without what was
//! written again: records behind the newest completed checkpoint of an attempt that failed come by once more. Where nothing fails the ratio
//! is 1. A job that restarts again and again shows a higher one; and what a sink without transactions wrote before a restart is in its
//! output twice.
//!
//! What a process wrote before it was killed is not known to the next one, which begins with 1. Sinks that share subtasks are counted together.
//!
//! Owns: the window, the alarm. Does not own: the counts (they come from the job master). Runs on: the thread that steps the job. Pure.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::clock::Moment;
use crate::ids::VertexId;
use crate::jobmanager::plan::{JobPlan, OperatorKind};

/// The ratio is taken over so long.
pub const OUTPUT_WINDOW: Duration = Duration::from_secs(60);
/// What happens within this time is counted together.
const SLICE: Duration = Duration::from_secs(1);
/// A ratio above this is told, in thousandths.
pub const ALARM_PER_MILLE: u64 = 1_050;

/// What the sinks of one vertex have written in the last minute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OutputFigures {
    /// Their names.
    pub sinks: String,
    /// Records written.
    pub written: u64,
    /// Of them: those that had been written before.
    pub repeated: u64,
    /// All these sinks write in transactions: what an attempt that failed had written and not completed was rolled back.
    pub in_transactions: bool,
}

impl OutputFigures {
    /// Records out per 1,000 records in; `None` where nothing was written.
    pub fn per_mille(&self) -> Option<u64> {
        let distinct = self.written.saturating_sub(self.repeated).max(1);
        (self.written > 0).then(|| self.written.saturating_mul(1_000) / distinct)
    }

    fn add(&mut self, other: &Self) {
        self.sinks = format!("{}, {}", self.sinks, other.sinks);
        self.written += other.written;
        self.repeated += other.repeated;
    }
}

#[derive(Debug, Default)]
struct Meter {
    sinks: String,
    in_transactions: bool,
    /// Records of the running attempt that were counted.
    counted: u64,
    /// When, written, written again.
    slices: VecDeque<(Moment, u64, u64)>,
    told_at: Option<Moment>,
}

/// See the module.
#[derive(Debug)]
pub struct OutputMeter {
    vertices: BTreeMap<VertexId, Meter>,
}

impl Meter {
    fn add(&mut self, now: Moment, written: u64, repeated: u64) {
        if written == 0 && repeated == 0 {
            return;
        }
        match self.slices.back_mut() {
            Some((at, w, r)) if now < *at + SLICE => (*w, *r) = (*w + written, *r + repeated),
            _ => self.slices.push_back((now, written, repeated)),
        }
    }

    fn figures(&mut self, now: Moment) -> OutputFigures {
        self.slices.retain(|(at, ..)| *at + OUTPUT_WINDOW > now);
        let sum = |of: fn(&(Moment, u64, u64)) -> u64| self.slices.iter().map(of).sum();
        OutputFigures {
            sinks: self.sinks.clone(),
            written: sum(|s| s.1),
            repeated: sum(|s| s.2),
            in_transactions: self.in_transactions,
        }
    }
}

impl OutputMeter {
    /// Nothing is written yet.
    pub fn new(plan: &JobPlan) -> Self {
        let is_sink = |kind| matches!(kind, OperatorKind::Sink | OperatorKind::TwoPhaseSink);
        let vertices = plan.vertices.iter().filter_map(|vertex| {
            let sinks: Vec<_> = vertex.operators.iter().filter(|o| is_sink(o.kind)).collect();
            let names: Vec<&str> = sinks.iter().map(|sink| sink.name.as_str()).collect();
            let in_transactions = sinks.iter().all(|sink| sink.kind == OperatorKind::TwoPhaseSink);
            let meter = Meter { sinks: names.join(", "), in_transactions, ..Meter::default() };
            (!sinks.is_empty()).then_some((vertex.id, meter))
        });
        Self { vertices: vertices.collect() }
    }

    /// What the running attempt has written so far: by vertex, with what no completed checkpoint covers.
    pub fn written(&mut self, now: Moment, by_vertex: &BTreeMap<VertexId, (u64, u64)>) {
        for (vertex, (written, _)) in by_vertex {
            let Some(meter) = self.vertices.get_mut(vertex) else { continue };
            let more = written.saturating_sub(meter.counted);
            meter.counted = meter.counted.max(*written);
            meter.add(now, more, 0);
        }
    }

    /// The attempt has failed, and another one goes on from the newest completed checkpoint.
    pub fn attempt_failed(&mut self, now: Moment, by_vertex: &BTreeMap<VertexId, (u64, u64)>) {
        self.written(now, by_vertex);
        for (vertex, meter) in &mut self.vertices {
            meter.counted = 0;
            meter.add(now, 0, by_vertex.get(vertex).map_or(0, |(_, beyond)| *beyond));
        }
    }

    /// The figures of the vertex with the highest ratio; `None` where nothing was written.
    pub fn highest(&mut self, now: Moment) -> Option<OutputFigures> {
        let all = self.vertices.values_mut().map(|meter| meter.figures(now));
        all.filter(|figures| figures.written > 0).max_by_key(OutputFigures::per_mille)
    }

    /// Those whose ratio is too high and was not told within the window; sinks with the same promise are told together.
    pub fn alarms(&mut self, now: Moment) -> Vec<OutputFigures> {
        let mut alarms: Vec<OutputFigures> = Vec::new();
        for meter in self.vertices.values_mut() {
            if meter.told_at.is_some_and(|at| now < at + OUTPUT_WINDOW) {
                continue;
            }
            let figures = meter.figures(now);
            if figures.per_mille() > Some(ALARM_PER_MILLE) {
                meter.told_at = Some(now);
                match alarms.iter_mut().find(|alarm| alarm.in_transactions == figures.in_transactions) {
                    Some(alarm) => alarm.add(&figures),
                    None => alarms.push(figures),
                }
            }
        }
        alarms
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobmanager::plan::{OperatorPlan, VertexPlan};

    const SINK: VertexId = VertexId(0);

    fn vertex(id: VertexId, sink: &str, kind: OperatorKind) -> VertexPlan {
        let operator = |name: &str, kind| OperatorPlan {
            uid: Some(name.into()),
            name: name.to_owned(),
            kind,
            states: Vec::new(),
            has_on_end: false,
        };
        VertexPlan {
            id,
            name: sink.to_owned(),
            parallelism: 2,
            max_parallelism: 128,
            is_source: false,
            upstream: Vec::new(),
            operators: vec![operator("total", OperatorKind::Keyed), operator(sink, kind)],
        }
    }

    fn meter() -> OutputMeter {
        let vertices = vec![vertex(SINK, "rows", OperatorKind::Sink)];
        OutputMeter::new(&JobPlan { job: "orders".into(), vertices })
    }

    fn seconds(seconds: u64) -> Moment {
        Duration::from_secs(seconds)
    }

    fn at(written: u64, beyond: u64) -> BTreeMap<VertexId, (u64, u64)> {
        [(SINK, (written, beyond))].into()
    }

    #[test]
    fn a_job_that_does_not_fail_has_the_ratio_one() {
        let mut meter = meter();
        assert_eq!(meter.highest(seconds(0)), None);
        for second in 1..200 {
            meter.written(seconds(second), &at(second * 100, 70));
            assert_eq!(meter.highest(seconds(second)).unwrap().per_mille(), Some(1_000));
            assert_eq!(meter.alarms(seconds(second)), []);
        }
        assert_eq!(meter.highest(seconds(199)).unwrap().written, 6_000, "of the last minute");
    }

    #[test]
    fn what_is_written_again_after_a_failure_raises_the_alarm_once_in_a_window() {
        let mut meter = meter();
        meter.written(seconds(1), &at(1_000, 400));
        meter.attempt_failed(seconds(2), &at(1_200, 600));
        meter.written(seconds(3), &at(600, 0));
        let figures = meter.alarms(seconds(3));
        let expected =
            OutputFigures { sinks: "rows".into(), written: 1_800, repeated: 600, in_transactions: false };
        assert_eq!(figures, [expected]);
        assert_eq!(figures[0].per_mille(), Some(1_500));
        for second in 4..60 {
            meter.attempt_failed(seconds(second), &at(100, 100));
            assert_eq!(meter.alarms(seconds(second)), [], "second {second}");
        }
        assert_eq!(meter.alarms(seconds(63)).len(), 1, "it still fails");
        assert_eq!(meter.alarms(seconds(190)), [], "it has come to rest");
        assert_eq!(meter.highest(seconds(190)), None);
    }

    #[test]
    fn a_failure_that_repeats_one_record_in_a_hundred_raises_no_alarm() {
        let mut meter = meter();
        meter.attempt_failed(seconds(1), &at(1_000, 10));
        assert_eq!(meter.highest(seconds(1)).unwrap().per_mille(), Some(1_010));
        assert_eq!(meter.alarms(seconds(1)), []);
    }

    #[test]
    fn sinks_with_the_same_promise_raise_one_alarm_together() {
        let vertices = vec![
            vertex(VertexId(0), "log", OperatorKind::TwoPhaseSink),
            vertex(VertexId(1), "rows", OperatorKind::Sink),
            vertex(VertexId(2), "stat", OperatorKind::TwoPhaseSink),
        ];
        let mut meter = OutputMeter::new(&JobPlan { job: "orders".into(), vertices });
        let of = |id| (VertexId(id), (100_u64, 50_u64));
        meter.attempt_failed(seconds(1), &[of(0), of(1), of(2)].into());
        let told: Vec<_> =
            meter.alarms(seconds(1)).into_iter().map(|a| (a.sinks, a.written, a.repeated)).collect();
        assert_eq!(told, [("log, stat".to_owned(), 200, 100), ("rows".to_owned(), 100, 50)]);
        assert_eq!(meter.alarms(seconds(2)), []);
    }
}
