//! One queue for each of many channels, in common memory.
//!
//! A subtask with a hundred channels mostly has something in few of them. So a channel costs eight bytes while it is empty, places
//! are used again across channels, and the places of a burst are given back when nothing is left.
//!
//! Owns: order within each channel. Does not own: a bound (credits bound what comes in). Runs on: one slot's thread.

/// No place.
const NONE: u32 = u32::MAX;
/// Places that are kept when nothing is queued.
const PLACES_KEPT: usize = 32;

/// See the module.
#[derive(Debug)]
pub struct ChannelQueues<T> {
    ends: Box<[Ends]>,
    places: Vec<Place<T>>,
    free: u32,
    queued: usize,
}

#[derive(Clone, Copy, Debug)]
struct Ends {
    first: u32,
    last: u32,
}

#[derive(Debug)]
struct Place<T> {
    element: Option<T>,
    next: u32,
}

impl<T> ChannelQueues<T> {
    /// An empty queue for each of `channels`.
    pub fn new(channels: usize) -> Self {
        let ends = vec![Ends { first: NONE, last: NONE }; channels].into_boxed_slice();
        Self { ends, places: Vec::new(), free: NONE, queued: 0 }
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.ends.len()
    }

    /// Whether nothing is queued in any channel.
    pub fn all_empty(&self) -> bool {
        self.queued == 0
    }

    /// Whether nothing is queued in this channel.
    pub fn is_empty(&self, channel: usize) -> bool {
        self.ends[channel].first == NONE
    }

    /// The first element of a channel.
    pub fn front(&self, channel: usize) -> Option<&T> {
        self.places.get(self.ends[channel].first as usize)?.element.as_ref()
    }

    /// The last element of a channel.
    pub fn back_mut(&mut self, channel: usize) -> Option<&mut T> {
        self.places.get_mut(self.ends[channel].last as usize)?.element.as_mut()
    }

    /// Puts an element behind the others of a channel.
    pub fn push_back(&mut self, channel: usize, element: T) {
        let at = self.take_place(element);
        let ends = &mut self.ends[channel];
        match self.places.get_mut(ends.last as usize) {
            Some(last) => last.next = at,
            None => ends.first = at,
        }
        ends.last = at;
        self.queued += 1;
    }

    fn take_place(&mut self, element: T) -> u32 {
        let filled = Place { element: Some(element), next: NONE };
        if let Some(place) = self.places.get_mut(self.free as usize) {
            let at = self.free;
            self.free = place.next;
            *place = filled;
            return at;
        }
        let at = u32::try_from(self.places.len()).expect("credits bound what is queued");
        self.places.push(filled);
        at
    }

    /// Takes the first element of a channel.
    pub fn pop_front(&mut self, channel: usize) -> Option<T> {
        let ends = &mut self.ends[channel];
        let at = ends.first;
        let place = self.places.get_mut(at as usize)?;
        let element = place.element.take();
        ends.first = place.next;
        if ends.first == NONE {
            ends.last = NONE;
        }
        place.next = self.free;
        self.free = at;
        self.queued -= 1;
        if self.queued == 0 && self.places.len() > PLACES_KEPT {
            self.places = Vec::new();
            self.free = NONE;
        }
        element
    }

    /// Everything that is queued, in no order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.places.iter().filter_map(|place| place.element.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[test]
    fn it_does_what_a_queue_for_each_channel_would_do() {
        let seed = 0x5eed_u64;
        let mut random = seed;
        let mut next = move |below: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % below
        };
        let mut queues = ChannelQueues::new(7);
        let mut model: Vec<VecDeque<u64>> = vec![VecDeque::new(); 7];
        for step in 0..20_000_u64 {
            let channel = usize::try_from(next(7)).unwrap();
            // Long stretches that fill, and long ones that drain.
            if next(10) < if step / 500 % 2 == 0 { 7 } else { 2 } {
                queues.push_back(channel, step);
                model[channel].push_back(step);
            } else {
                assert_eq!(queues.pop_front(channel), model[channel].pop_front(), "seed {seed}, step {step}");
            }
            assert_eq!(queues.front(channel), model[channel].front());
            assert_eq!(queues.back_mut(channel).copied(), model[channel].back().copied());
            assert_eq!(queues.is_empty(channel), model[channel].is_empty());
            assert_eq!(queues.iter().count(), model.iter().map(VecDeque::len).sum::<usize>());
        }
    }

    #[test]
    fn places_are_used_again_and_those_of_a_burst_are_given_back() {
        let mut queues = ChannelQueues::new(2);
        for round in 0..100 {
            queues.push_back(round % 2, round);
            queues.push_back(0, round);
            while queues.pop_front(0).is_some() {}
            while queues.pop_front(1).is_some() {}
        }
        assert!(queues.places.len() <= 2);
        (0..1_000).for_each(|i| queues.push_back(i % 2, i));
        (0..1_000).for_each(|i| assert_eq!(queues.pop_front(i % 2), Some(i)));
        assert!(queues.all_empty() && queues.places.capacity() == 0);
    }
}
