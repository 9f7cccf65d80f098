/** A stack that is known frame by frame and line by line: prints Thread.getStackTrace() at the
 * cooperative point, then spins there. When C2 has inlined its frames they must still be the
 * same. */
public class WalkKnown {
    static volatile long sink;
    static boolean told;

    static void spin() {
        if (!told) tell();
        long x = sink;
        for (int i = 0; i < 3_000_000; i++) x = x * 31 + i ^ x >> 7;
        sink = x;
    }

    static void tell() {
        told = true;
        StackTraceElement[] stack = Thread.currentThread().getStackTrace();
        for (int i = 3; i < stack.length; i++) {
            System.out.println("FRAME " + stack[i].getClassName() + "." + stack[i].getMethodName() + ":"
                + stack[i].getLineNumber());
        }
        System.out.println("TOLD");
    }

    interface Step {
        void go(int depth);
    }

    static class Left implements Step {
        public void go(int depth) {
            if (depth > 0) new Right().go(depth - 1);
            else
                spin();
        }
    }

    static class Right implements Step {
        public void go(int depth) {
            Step next = new Left();
            next.go(depth - 1);
        }
    }

    static void three(Step s) {
        s.go(20);
    }

    static void two(Step s) {
        three(s);
    }

    static void one(Step s) {
        two(s);
    }

    static void forever() {
        Step s = new Left();
        for (;;) {
            one(s);
        }
    }

    public static void main(String[] args) {
        System.out.println("READY");
        new Thread(WalkKnown::forever, "known").start();
    }
}
