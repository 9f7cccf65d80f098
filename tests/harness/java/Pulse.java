/** Uses a twentieth of a CPU in pieces of a millisecond until a line arrives on stdin, like one
 * of many services on a host. */
public class Pulse {
    static volatile long sink;

    static void beat() {
        long end = System.nanoTime() + 1_000_000;
        while (System.nanoTime() < end) sink++;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        while (System.in.available() == 0) {
            beat();
            Thread.sleep(19);
        }
        System.out.println("END");
    }
}
