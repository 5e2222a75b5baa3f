//! A librdkafka consumer whose records come many at a time.
//!
//! `BaseConsumer::poll` makes an event of each record: an allocation or two, a lock and four looks at the clock, a fifth of what reading a
//! small record costs. So the records of all partitions are forwarded to a queue of their own, from which librdkafka hands out whole
//! batches (`rd_kafka_consume_batch_queue`). Everything else (statistics, lines of the log, errors) stays in the consumer's queue.
//!
//! A partition is forwarded before it is assigned, once: when fetching stops, librdkafka takes the forwarding back at some later moment, and
//! does not set it again for a queue that was ever forwarded by hand. Who wants to begin again somewhere else makes a new consumer.
//!
//! Owns: the queue, the calls of librdkafka that rdkafka does not offer, and with them all `unsafe` code of this crate.
//! Does not own: what is read and from where. Runs on: the consumer's thread.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};
use std::time::Duration;

use rdkafka::bindings as native;
use rdkafka::consumer::{BaseConsumer, Consumer, ConsumerContext};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::types::RDKafkaRespErr;
use rdkafka::{ClientConfig, TopicPartitionList};

/// A handle of a queue of librdkafka.
struct Queue(NonNull<native::rd_kafka_queue_t>);

// SAFETY: queues of librdkafka are guarded by locks of their own, and a handle may be used and destroyed on any thread.
unsafe impl Send for Queue {}
// SAFETY: as above.
unsafe impl Sync for Queue {}

impl Queue {
    fn of(handle: *mut native::rd_kafka_queue_t) -> Result<Self, KafkaError> {
        let none = || KafkaError::ClientCreation("librdkafka gave no queue".to_owned());
        NonNull::new(handle).map(Self).ok_or_else(none)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: the handle came from a call that passes it on to its caller, and is not used after this.
        unsafe { native::rd_kafka_queue_destroy(self.0.as_ptr()) }
    }
}

/// See the module.
pub(super) struct BatchConsumer<C: ConsumerContext> {
    // Handles of queues must go before their client does: fields are dropped in this order.
    records: Queue,
    events: Queue,
    consumer: BaseConsumer<C>,
}

impl<C: ConsumerContext> BatchConsumer<C> {
    /// Connects lazily. `client` must name a group, as consumers with a queue of their own do.
    pub(super) fn open(client: &ClientConfig, context: C) -> Result<Self, KafkaError> {
        let consumer: BaseConsumer<C> = client.create_with_context(context)?;
        let rk = consumer.client().native_ptr();
        // SAFETY: `rk` lives as long as `consumer`, which is dropped behind both handles.
        let (records, events) =
            unsafe { (native::rd_kafka_queue_new(rk), native::rd_kafka_queue_get_consumer(rk)) };
        Ok(Self { records: Queue::of(records)?, events: Queue::of(events)?, consumer })
    }

    /// Reads these partitions too; none of them was read by this consumer before.
    pub(super) fn add(&self, topic: &str, partitions: &TopicPartitionList) -> Result<(), KafkaError> {
        let name = CString::new(topic).map_err(KafkaError::Nul)?;
        for added in partitions.elements() {
            // SAFETY: the client lives, and the name is read during the call only.
            let fetched = Queue::of(unsafe {
                native::rd_kafka_queue_get_partition(
                    self.consumer.client().native_ptr(),
                    name.as_ptr(),
                    added.partition(),
                )
            })?;
            // SAFETY: both handles live during the call; librdkafka keeps what it needs of the queues by counting.
            unsafe { native::rd_kafka_queue_forward(fetched.0.as_ptr(), self.records.0.as_ptr()) }
        }
        self.consumer.incremental_assign(partitions)
    }

    /// Reads no more of these partitions.
    pub(super) fn remove(&self, partitions: &TopicPartitionList) -> Result<(), KafkaError> {
        self.consumer.incremental_unassign(partitions)
    }

    /// The consumer, for everything but its records.
    pub(super) fn client(&self) -> &BaseConsumer<C> {
        &self.consumer
    }

    /// Up to `most` records and ends of partitions; the first of them is waited for.
    pub(super) fn take(&self, most: usize, wait: Duration) -> Batch<'_> {
        let mut messages = vec![ptr::null_mut(); most];
        // librdkafka waits until there is room for no more, or for so long: only the first is waited for so.
        let mut count = if wait.is_zero() { 0 } else { self.fill(&mut messages[..1.min(most)], wait) };
        if count > 0 || wait.is_zero() {
            count += self.fill(&mut messages[count..], Duration::ZERO);
        }
        messages.truncate(count);
        Batch { messages, consumer: PhantomData }
    }

    /// How many were put into `room`, from its front on.
    fn fill(&self, room: &mut [*mut native::rd_kafka_message_t], wait: Duration) -> usize {
        let wait_ms = c_int::try_from(wait.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: the queue lives, and librdkafka writes at most as many pointers as there is room for.
        let count = unsafe {
            native::rd_kafka_consume_batch_queue(
                self.records.0.as_ptr(),
                wait_ms,
                room.as_mut_ptr(),
                room.len(),
            )
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Serves what waits in the consumer's queue; errors, and records that came there, are left to `on_other`.
    ///
    /// What librdkafka has told before it fetched a record is served by this when the record is in hand.
    pub(super) fn serve_events<E>(
        &self,
        mut on_other: impl FnMut(Result<BorrowedMessage<'_>, KafkaError>) -> Result<(), E>,
    ) -> Result<(), E> {
        // SAFETY: the handle lives.
        let waiting = unsafe { native::rd_kafka_queue_length(self.events.0.as_ptr()) };
        for _ in 0..waiting {
            if let Some(other) = self.consumer.poll(Duration::ZERO) {
                on_other(other)?;
            }
        }
        Ok(())
    }
}

/// What a consumer had, in the order in which each partition has it.
pub(super) struct Batch<'a> {
    messages: Vec<*mut native::rd_kafka_message_t>,
    /// Their memory is the consumer's.
    consumer: PhantomData<&'a ()>,
}

impl Batch<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = FetchedMessage<'_>> {
        // SAFETY: librdkafka filled in pointers to messages, which are destroyed with this batch only.
        self.messages.iter().map(|message| FetchedMessage { native: unsafe { &**message } })
    }
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        for message in &self.messages {
            // SAFETY: each came from librdkafka, is destroyed once, and nothing borrows from it any more.
            unsafe { native::rd_kafka_message_destroy(*message) }
        }
    }
}

/// What a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageKind {
    /// A record.
    Record,
    /// Nothing more is in the partition; the offset is what comes next.
    AtEnd,
    /// The partition cannot be read.
    Failed(RDKafkaErrorCode),
}

/// A record, or what else there is to say of a partition.
#[derive(Clone, Copy)]
pub(super) struct FetchedMessage<'a> {
    native: &'a native::rd_kafka_message_t,
}

impl std::fmt::Debug for FetchedMessage<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FetchedMessage")
            .field("partition", &self.partition())
            .field("offset", &self.offset())
            .finish_non_exhaustive()
    }
}

impl<'a> FetchedMessage<'a> {
    pub(super) fn kind(&self) -> MessageKind {
        match self.native.err {
            RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR => MessageKind::Record,
            RDKafkaRespErr::RD_KAFKA_RESP_ERR__PARTITION_EOF => MessageKind::AtEnd,
            other => MessageKind::Failed(other.into()),
        }
    }

    pub(super) fn partition(&self) -> i32 {
        self.native.partition
    }

    pub(super) fn offset(&self) -> i64 {
        self.native.offset
    }

    /// Bytes of key and value.
    pub(super) fn bytes(&self) -> usize {
        self.native.key_len + self.native.len
    }

    /// The key of a record.
    pub(super) fn key(&self) -> Option<&'a [u8]> {
        bytes_at(self.native.key, self.native.key_len)
    }

    /// The value of a record; `None`: a tombstone.
    pub(super) fn value(&self) -> Option<&'a [u8]> {
        bytes_at(self.native.payload, self.native.len)
    }

    /// Milliseconds since 1970.
    pub(super) fn timestamp_ms(&self) -> Option<i64> {
        // SAFETY: the message lives; the kind of the timestamp is not asked for.
        let ms = unsafe { native::rd_kafka_message_timestamp(self.native, ptr::null_mut()) };
        (ms >= 0).then_some(ms)
    }

    /// Headers in order, read anew at each call.
    pub(super) fn headers(&self) -> Vec<(&'a str, Option<&'a [u8]>)> {
        let mut headers = ptr::null_mut();
        // SAFETY: the message lives, and its headers live as long as it does.
        let found = unsafe { native::rd_kafka_message_headers(self.native, &raw mut headers) };
        if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
            return Vec::new();
        }
        (0..).map_while(|index| header(headers, index)).collect()
    }
}

/// The header of this index; a name that is no UTF-8 is empty.
fn header<'a>(
    headers: *const native::rd_kafka_headers_t,
    index: usize,
) -> Option<(&'a str, Option<&'a [u8]>)> {
    let (mut name, mut value, mut size) = (ptr::null::<c_char>(), ptr::null::<c_void>(), 0);
    // SAFETY: the headers live, and an index behind the last one is answered with an error.
    let found = unsafe {
        native::rd_kafka_header_get_all(headers, index, &raw mut name, &raw mut value, &raw mut size)
    };
    if found != RDKafkaRespErr::RD_KAFKA_RESP_ERR_NO_ERROR {
        return None;
    }
    // SAFETY: librdkafka ends each name with a zero byte, and it lives as long as its message.
    let name = unsafe { CStr::from_ptr(name) };
    Some((name.to_str().unwrap_or_default(), bytes_at(value, size)))
}

/// What librdkafka points at; it says that there is nothing by a null pointer.
fn bytes_at<'a>(start: *const c_void, bytes: usize) -> Option<&'a [u8]> {
    // SAFETY: callers pass a pointer and a length that belong together, of memory that lives as long as their message.
    (!start.is_null()).then(|| unsafe { std::slice::from_raw_parts(start.cast(), bytes) })
}
