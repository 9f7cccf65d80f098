
/** Uses CPU time in the kernel's vDSO, and in the collector's native threads. */
public class NativeNames {
    static volatile Object kept;
    static volatile long sum;

    static void clock() {
        for (;;) {
            sum += System.nanoTime();
        }
    }

    static void garbage() {
        Object[] survivors = new Object[20000];
        for (int i = 0;; i++) {
            survivors[i % survivors.length] = new byte[1000];
            kept = survivors;
        }
    }

    public static void main(String[] args) throws Exception {
        for (Runnable r : new Runnable[] {NativeNames::clock, NativeNames::garbage}) {
            Thread t = new Thread(r);
            t.setDaemon(true);
            t.start();
        }
        System.out.println("READY");
        while (System.in.read() >= 0) {
        }
    }
}
