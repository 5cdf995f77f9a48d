import java.util.concurrent.atomic.AtomicBoolean;

import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;

/**
 * Appends a word, and takes its time, so that kills fall where they rarely do.
 *
 * <p>A slow snapshot comes after the sink's flush, and before the checkpoint is complete. A slow record comes
 * before it, or between a complete checkpoint and its commit: both are done by the thread of the records.
 */
final class SlowMap implements MapFunction<String, String>, CheckpointedFunction {
    private static final long serialVersionUID = 1;
    private static final int RECORDS = 100;
    private static final AtomicBoolean FAILS = new AtomicBoolean(); // all tasks are in this process

    private final long pauseMs;
    private int records;

    SlowMap(long pauseMs) {
        this.pauseMs = pauseMs;
    }

    /** Whichever task has the next record fails. */
    static void failOnce() {
        FAILS.set(true);
    }

    @Override
    public String map(String value) throws InterruptedException {
        if (FAILS.getAndSet(false)) {
            throw new IllegalStateException("the test wants it");
        }
        records++;
        if (records % RECORDS == 0) {
            Thread.sleep(pauseMs);
        }
        return value + " copied";
    }

    @Override
    public void snapshotState(FunctionSnapshotContext context) throws InterruptedException {
        Thread.sleep(pauseMs);
    }

    @Override
    public void initializeState(FunctionInitializationContext context) {}
}
