/** Short-lived threads whose first method is compiled, and safepoints all the time: that method
 * polls for a safepoint when it returns. */
public class WalkBrief {
    static volatile int sink;

    public static class Brief extends Thread {
        public void run() {
            for (int i = 0; i < 200; i++) sink += i;
        }
    }

    static void daemon(Runnable work) {
        Thread t = new Thread(() -> {
            for (;;) work.run();
        });
        t.setDaemon(true);
        t.start();
    }

    static void startOne() {
        Brief b = new Brief();
        b.start();
        try {
            b.join();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    public static void main(String[] args) throws InterruptedException {
        for (int i = 0; i < 20000; i++) new Brief().run();
        System.out.println("READY");
        daemon(System::gc);
        for (int i = 0; i < 3; i++) daemon(WalkBrief::startOne);
        Thread.sleep(600000);
    }
}
