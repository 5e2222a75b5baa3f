//! The minimum of the watermarks of several channels.
//!
//! Owns: watermark, status and end of each channel. Does not own: channels. Runs on: the receiving slot. Pure.

use crate::element::{EventTime, StreamStatus};

#[derive(Clone, Copy, Debug)]
struct ChannelTime {
    watermark: EventTime,
    status: StreamStatus,
    ended: bool,
}

/// What the valve lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValveOutput {
    /// Nothing new.
    Nothing,
    /// The minimum has risen.
    Watermark(EventTime),
    /// Every channel became idle, or one became active again.
    Status(StreamStatus),
    /// Every channel has ended.
    EndOfData,
}

/// Watermark = minimum over the channels that are neither idle nor ended; it never falls.
#[derive(Clone, Debug)]
pub struct WatermarkValve {
    channels: Vec<ChannelTime>,
    sent: EventTime,
    status: StreamStatus,
    ended: bool,
}

impl WatermarkValve {
    /// All channels active, no watermark yet.
    pub fn new(channels: usize) -> Self {
        let start = ChannelTime { watermark: EventTime::MIN, status: StreamStatus::Active, ended: false };
        Self {
            channels: vec![start; channels],
            sent: EventTime::MIN,
            status: StreamStatus::Active,
            ended: false,
        }
    }

    /// Channel `channel` has reached `at`.
    pub fn on_watermark(&mut self, channel: usize, at: EventTime) -> ValveOutput {
        let state = &mut self.channels[channel];
        state.watermark = state.watermark.max(at);
        self.output()
    }

    /// Channel `channel` became idle or active.
    pub fn on_status(&mut self, channel: usize, status: StreamStatus) -> ValveOutput {
        self.channels[channel].status = status;
        let now = self.combined_status();
        if now != self.status {
            self.status = now;
            return ValveOutput::Status(now);
        }
        self.output()
    }

    /// Channel `channel` has ended: it counts as the maximum watermark.
    pub fn on_end(&mut self, channel: usize) -> ValveOutput {
        self.channels[channel].ended = true;
        if !self.ended && self.channels.iter().all(|c| c.ended) {
            self.ended = true;
            return ValveOutput::EndOfData;
        }
        self.output()
    }

    fn combined_status(&self) -> StreamStatus {
        let mut live = self.channels.iter().filter(|c| !c.ended).peekable();
        if live.peek().is_some() && live.all(|c| c.status == StreamStatus::Idle) {
            StreamStatus::Idle
        } else {
            StreamStatus::Active
        }
    }

    fn output(&mut self) -> ValveOutput {
        let counted = self.channels.iter().filter(|c| !c.ended && c.status == StreamStatus::Active);
        match counted.map(|c| c.watermark).min() {
            Some(min) if min > self.sent => {
                self.sent = min;
                ValveOutput::Watermark(min)
            }
            _ => ValveOutput::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_silent_channel_holds_the_watermark_until_it_is_idle() {
        let mut valve = WatermarkValve::new(2);
        assert_eq!(valve.on_watermark(0, EventTime(10)), ValveOutput::Nothing);
        assert_eq!(valve.on_status(1, StreamStatus::Idle), ValveOutput::Watermark(EventTime(10)));
        assert_eq!(valve.on_status(0, StreamStatus::Idle), ValveOutput::Status(StreamStatus::Idle));
    }

    #[test]
    fn an_ended_channel_holds_nobody_up() {
        let mut valve = WatermarkValve::new(2);
        valve.on_watermark(0, EventTime(10));
        assert_eq!(valve.on_end(1), ValveOutput::Watermark(EventTime(10)));
        assert_eq!(valve.on_end(0), ValveOutput::EndOfData);
    }

    proptest! {
        #[test]
        fn the_watermark_never_falls_and_never_passes_an_active_channel(
            events in prop::collection::vec((0usize..3, 0u8..4, -50i64..50), 0..200)
        ) {
            let mut valve = WatermarkValve::new(3);
            let (mut times, mut idle, mut ended) = ([i64::MIN; 3], [false; 3], [false; 3]);
            let mut sent = i64::MIN;
            for (channel, kind, at) in events {
                if ended[channel] {
                    continue;
                }
                let output = match kind {
                    0 => { idle[channel] = true; valve.on_status(channel, StreamStatus::Idle) }
                    1 => { idle[channel] = false; valve.on_status(channel, StreamStatus::Active) }
                    2 if at > 45 => { ended[channel] = true; valve.on_end(channel) }
                    _ => { times[channel] = times[channel].max(at); valve.on_watermark(channel, EventTime(at)) }
                };
                if let ValveOutput::Watermark(now) = output {
                    prop_assert!(now.0 > sent);
                    sent = now.0;
                    for i in 0..3 {
                        prop_assert!(ended[i] || idle[i] || times[i] >= sent);
                    }
                }
                if output == ValveOutput::EndOfData {
                    prop_assert!(ended.iter().all(|e| *e));
                }
            }
        }
    }
}
