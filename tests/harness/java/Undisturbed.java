/** The system calls of undisturbed.c, made by a thread of a JVM: Undisturbed LIBRARY. */
public class Undisturbed {
    static native String run();

    public static void main(String[] args) throws Exception {
        System.load(args[0]);
        System.out.println("READY");
        System.in.read();
        Thread caller = new Thread(() -> {
            System.out.print(run());
            System.out.println("END");
        }, "caller");
        caller.start();
        caller.join();
        System.in.read();
        System.exit(0);
    }
}
