/** Lives for the given number of milliseconds, with one busy thread, and prints when it began and
 * ended. */
public class Born {
    static volatile long sink;

    public static void main(String[] args) throws InterruptedException {
        System.out.println("READY");
        Thread busy = new Thread(() -> {
            while (true) sink++;
        });
        busy.setDaemon(true);
        busy.start();
        Thread.sleep(Integer.parseInt(args[0]));
        System.out.println("END");
    }
}
