//! Restores that must be refused, and those that must not.

use tidegate_state::{KeyGroupRange, Redistribution};

use super::*;
use crate::checkpoint::manifest::{KeyedStateHandle, ListStateHandle, OperatorSubtaskState};
use crate::element::CheckpointKind;
use crate::ids::{AttemptId, VertexId};

fn keyed(parallelism: usize, ended: &[bool]) -> OperatorState {
    let range = KeyGroupRange { start: 0, end: 128 };
    let handle = KeyedStateHandle { path: "1-1/total".into(), size_bytes: 40, range };
    let subtask =
        OperatorSubtaskState { uid: "total".into(), keyed: Some(handle), lists: Vec::new(), ended: false };
    OperatorState {
        uid: "total".into(),
        max_parallelism: 128,
        two_phase: false,
        has_on_end: true,
        subtasks: vec![subtask; parallelism],
        ended: ended.to_vec(),
        upstream: Vec::new(),
        enumerator: None,
    }
}

fn sink(pending: bool) -> OperatorState {
    let blob = StateBlob::Inline(vec![1, 2, 3]);
    let list = ListStateHandle { name: "pending".into(), redistribution: Redistribution::Union, blob };
    let lists = if pending { vec![list] } else { Vec::new() };
    OperatorState {
        uid: "sink".into(),
        max_parallelism: 128,
        two_phase: true,
        has_on_end: false,
        subtasks: vec![OperatorSubtaskState { uid: "sink".into(), keyed: None, lists, ended: false }],
        ended: vec![false],
        upstream: Vec::new(),
        enumerator: None,
    }
}

fn manifest(operators: Vec<OperatorState>) -> Manifest {
    Manifest {
        job: "orders".into(),
        log_id: "feed".into(),
        lineage: Default::default(),
        checkpoint: CheckpointId(14),
        attempt: AttemptId(1),
        kind: CheckpointKind::Checkpoint,
        completed_at_ms: 0,
        operators,
    }
}

fn plan(uid: &str, kind: OperatorKind, parallelism: u32, max_parallelism: u16) -> JobPlan {
    let operator = OperatorPlan {
        uid: Some(uid.into()),
        name: uid.into(),
        kind,
        states: Vec::new(),
        has_on_end: kind == OperatorKind::Keyed,
    };
    let vertex = VertexPlan {
        id: VertexId(0),
        name: uid.into(),
        parallelism,
        max_parallelism,
        is_source: false,
        upstream: Vec::new(),
        operators: vec![operator],
    };
    JobPlan { job: "orders".into(), vertices: vec![vertex] }
}

fn check(operators: Vec<OperatorState>, plan: &JobPlan) -> Result<Vec<RestoreNote>, RestoreRefusal> {
    check_restore(&manifest(operators), plan, &RestoreOptions::default())
}

#[test]
fn field_case_65_another_max_parallelism_is_refused() {
    let refused = check(vec![keyed(2, &[false; 2])], &plan("total", OperatorKind::Keyed, 2, 256));
    assert!(matches!(refused, Err(RestoreRefusal::MaxParallelismDiffers { was: 128, is: 256, .. })));
}

#[test]
fn more_subtasks_than_key_groups_are_refused() {
    let refused = check_plan(&plan("total", OperatorKind::Keyed, 129, 128));
    assert!(matches!(refused, Err(RestoreRefusal::ParallelismOverMax { parallelism: 129, max: 128, .. })));
}

#[test]
fn state_that_no_operator_claims_is_refused_or_dropped_by_decision() {
    let other = plan("totals", OperatorKind::Keyed, 1, 128);
    let refused = check(vec![keyed(1, &[false])], &other).unwrap_err();
    assert!(matches!(&refused, RestoreRefusal::OperatorMissing { size_bytes: 40, .. }));
    assert!(refused.to_string().contains("--allow-non-restored-state"));
    let allowed = RestoreOptions { allow_non_restored_state: true, ..Default::default() };
    let notes = check_restore(&manifest(vec![keyed(1, &[false])]), &other, &allowed).unwrap();
    let dropped = RestoreNote::Dropped { uid: "total".into(), size_bytes: 40 };
    assert_eq!(notes, [dropped, RestoreNote::New { uid: "totals".into() }]);
}

#[test]
fn a_partly_ended_operator_with_on_end_keeps_its_parallelism() {
    let at = |parallelism| plan("total", OperatorKind::Keyed, parallelism, 128);
    let partly = || vec![keyed(2, &[true, false])];
    assert!(check(partly(), &at(2)).is_ok());
    assert!(matches!(check(partly(), &at(1)), Err(RestoreRefusal::PartlyEnded { was: 2, ended: 1, .. })));
    assert!(matches!(check(partly(), &at(3)), Err(RestoreRefusal::PartlyEnded { .. })));
    assert!(check(vec![keyed(2, &[true, true])], &at(3)).is_ok());
    assert!(check(vec![keyed(2, &[false, false])], &at(3)).is_ok());
}

#[test]
fn a_sink_with_pending_transactions_is_not_removed() {
    let gone = plan("other", OperatorKind::TwoPhaseSink, 1, 128);
    let allowed = RestoreOptions { allow_non_restored_state: true, ..Default::default() };
    let refused = check_restore(&manifest(vec![sink(true)]), &gone, &allowed);
    assert!(matches!(refused, Err(RestoreRefusal::PendingSinkRemoved { .. })));
    let one_phase = plan("sink", OperatorKind::Sink, 1, 128);
    assert!(matches!(check(vec![sink(true)], &one_phase), Err(RestoreRefusal::PendingSinkRemoved { .. })));
    assert!(check(vec![sink(false)], &gone).is_ok());
    let committed = vec![("sink".into(), CheckpointId(14))];
    let settled = RestoreOptions { committed, ..allowed.clone() };
    assert!(check_restore(&manifest(vec![sink(true)]), &gone, &settled).is_ok());
    let empty = RestoreOptions { list_len: Some(|_| Some(0)), ..allowed };
    assert!(check_restore(&manifest(vec![sink(true)]), &gone, &empty).is_ok());
}
