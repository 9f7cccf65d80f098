/** The library tests/harness/publishes.c: TraceKnown loads this class, some of them by class loaders that it drops. */
public class TracePublished {
    static {
        System.load(System.getProperty("publishes"));
    }

    /** Publishes the ids number, 0 = none, as the calling thread's context. Returns what was published before. */
    public static native long number(long number);
}
