/** Uses about a hundredth of a CPU until it is ended, like a service without requests. */
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
