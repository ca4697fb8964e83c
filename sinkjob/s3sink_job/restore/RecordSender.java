package dev.s3sink.restore;

import java.io.Serializable;
import java.time.Duration;
import java.util.Collections;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.AdminClient;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.spark.api.java.function.ForeachPartitionFunction;
import org.apache.spark.sql.Row;

/**
 * Sends the records of one slice in one Spark task: each chunk in a Kafka transaction that also stores how far it got.
 *
 * Spark's Janino compiles this file when a restore starts, so it has no generics to infer and no lambdas. See
 * docs/decisions/0028-a-restore-sends-with-the-java-producer-in-tasks.md.
 */
public final class RecordSender implements ForeachPartitionFunction, Serializable {
    private static final long serialVersionUID = 1L;

    // Columns of the rows, as in restore/reading_task.py.
    private static final int SLICE = 0;
    private static final int POSITION = 1;
    private static final int PARTITION = 2;
    private static final int TIMESTAMP = 3;
    private static final int KEY = 4;
    private static final int VALUE = 5;
    private static final int HEADERS = 6;
    private static final int DIGEST = 7;

    private final Map connection;
    private final Map producer;
    private final List slices;
    private final long bytesPerSecond;
    private final int chunkRecords;
    private final long chunkBytes;
    private final long chunkMillis;

    /** `slices`: by number, maps with topic, transactionalId, group and groupPartition. No limit if the rate is 0. */
    public RecordSender(
            Map connection, Map producer, List slices, long bytesPerSecond, int chunkRecords, long chunkBytes,
            long chunkMillis) {
        this.connection = connection;
        this.producer = producer;
        this.slices = slices;
        this.bytesPerSecond = bytesPerSecond;
        this.chunkRecords = chunkRecords;
        this.chunkBytes = chunkBytes;
        this.chunkMillis = chunkMillis;
    }

    public void call(Iterator rows) throws Exception {
        if (!rows.hasNext()) {
            return;
        }
        Row first = (Row) rows.next();
        Session session = new Session((Map) this.slices.get(first.getInt(SLICE)));
        try {
            session.add(first);
            while (rows.hasNext()) {
                session.add((Row) rows.next());
            }
            session.commit();
        } finally {
            session.close();
        }
    }

    /** One transactional producer. Beginning it fences every earlier one of the slice, and aborts its transaction. */
    private final class Session {
        private final String topic;
        private final TopicPartition place;
        private final String group;
        private final KafkaProducer kafka;
        private final long began = System.nanoTime();
        private long position;
        private long records;
        private long sum;
        private long weighted;
        private boolean open;
        private long opened;
        private int inChunk;
        private long bytesInChunk;
        private long bytes;

        Session(Map slice) throws Exception {
            this.topic = (String) slice.get("topic");
            this.group = (String) slice.get("group");
            this.place = new TopicPartition(this.topic, Integer.parseInt((String) slice.get("groupPartition")));
            Map settings = new HashMap(RecordSender.this.producer);
            settings.putAll(RecordSender.this.connection);
            settings.put("transactional.id", slice.get("transactionalId"));
            this.kafka = new KafkaProducer(settings);
            try {
                this.kafka.initTransactions();
                this.read();
            } catch (Exception error) {
                this.close();
                throw error;
            }
        }

        /** After the fencing: nobody else can move it any more. */
        private void read() throws Exception {
            AdminClient admin = AdminClient.create(RecordSender.this.connection);
            try {
                ListConsumerGroupOffsetsOptions options = new ListConsumerGroupOffsetsOptions();
                options.requireStable(true);
                Map found = (Map) admin.listConsumerGroupOffsets(this.group, options)
                    .partitionsToOffsetAndMetadata().get();
                OffsetAndMetadata stored = (OffsetAndMetadata) found.get(this.place);
                if (stored == null) {
                    throw new IllegalStateException("ProgressLost: group " + this.group + " has no offset of " + this.place);
                }
                String[] numbers = stored.metadata().split(" ");
                this.position = stored.offset();
                this.records = Long.parseLong(numbers[0]);
                this.sum = Long.parseLong(numbers[1]);
                this.weighted = Long.parseLong(numbers[2]);
            } finally {
                admin.close(Duration.ofSeconds(1));
            }
        }

        void add(Row row) throws Exception {
            if (row.getLong(POSITION) < this.position) {
                return;
            }
            byte[] key = (byte[]) row.get(KEY);
            byte[] value = (byte[]) row.get(VALUE);
            int size = (key == null ? 0 : key.length) + (value == null ? 0 : value.length);
            this.slowDown(size);
            if (!this.open) {
                this.kafka.beginTransaction();
                this.open = true;
                this.opened = System.nanoTime();
            }
            Integer partition = row.isNullAt(PARTITION) ? null : Integer.valueOf(row.getInt(PARTITION));
            Long timestamp = Long.valueOf(row.getLong(TIMESTAMP));
            this.kafka.send(new ProducerRecord(this.topic, partition, timestamp, key, value, headers(row)));
            this.position = row.getLong(POSITION) + 1;
            this.records += 1;
            this.sum += row.getLong(DIGEST);
            this.weighted += row.getLong(DIGEST) * this.records;
            this.inChunk += 1;
            this.bytesInChunk += size;
            this.bytes += size;
            if (this.inChunk >= RecordSender.this.chunkRecords
                    || this.bytesInChunk >= RecordSender.this.chunkBytes
                    || (System.nanoTime() - this.opened) / 1000000L >= RecordSender.this.chunkMillis) {
                this.commit();
            }
        }

        /** No transaction stays open while it sleeps. */
        private void slowDown(int size) throws Exception {
            long rate = RecordSender.this.bytesPerSecond;
            if (rate <= 0) {
                return;
            }
            long due = (long) ((this.bytes + size) * 1000.0 / rate);
            long wait = due - (System.nanoTime() - this.began) / 1000000L;
            if (wait > 1000L) {
                this.commit();
            }
            if (wait > 0) {
                Thread.sleep(wait);
            }
        }

        void commit() {
            if (!this.open) {
                return;
            }
            String numbers = this.records + " " + this.sum + " " + this.weighted;
            Map offsets = Collections.singletonMap(this.place, new OffsetAndMetadata(this.position, numbers));
            this.kafka.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(this.group));
            this.kafka.commitTransaction();
            this.open = false;
            this.inChunk = 0;
            this.bytesInChunk = 0;
        }

        /** Without waiting: what is not committed is aborted, by the next session or by its timeout. */
        void close() {
            this.kafka.close(Duration.ofSeconds(1));
        }
    }

    private static RecordHeaders headers(Row row) {
        RecordHeaders headers = new RecordHeaders();
        Iterator items = row.getList(HEADERS).iterator();
        while (items.hasNext()) {
            Row header = (Row) items.next();
            headers.add(header.getString(0), (byte[]) header.get(1));
        }
        return headers;
    }
}
