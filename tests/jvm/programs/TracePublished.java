/** Loads the library tests/harness/publishes.c: TraceKnown loads this class, also by class
 * loaders that it drops later. */
public class TracePublished {
    static {
        System.load(System.getProperty("publishes"));
    }

    /** Publishes the ids made from the number (0 = none) as the calling thread's context. Returns
     * the number published before. */
    public static native long number(long number);
}
