/** Uses a hundredth or so of a CPU until it is ended: a service that nobody speaks to. */
public class Service {
    static volatile long sum;

    static void serve() {
        long end = System.nanoTime() + 2_000_000;
        while (System.nanoTime() < end)
            sum += end ^ sum;
    }

    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        while (true) {
            serve();
            Thread.sleep(100);
        }
    }
}
