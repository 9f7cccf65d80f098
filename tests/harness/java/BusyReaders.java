/**
 * COMPUTERS threads compute, so that each waits most of the time for a CPU; READERS threads read answers. Prints READY;
 * when it reads a line it prints how many nanoseconds the readers read, and all that took.
 */
public class BusyReaders {
    static volatile long result;

    static void compute() {
        for (long x = 1; !AnswerReaders.over; result = x)
            for (int i = 0; i < 100000; i++) x = x * 31 + i;
    }

    public static void main(String[] args) throws Exception {
        int computers = Integer.parseInt(args[0]), readers = Integer.parseInt(args[1]);
        long begin = System.nanoTime();
        Thread[] threads = AnswerReaders.begin(readers, 0);
        for (int i = 0; i < computers; i++) AnswerReaders.begin("computer-" + i, BusyReaders::compute);
        System.out.println("READY");
        System.in.read();
        AnswerReaders.over = true;
        for (Thread t : threads) t.join();
        System.out.println(AnswerReaders.reading + " " + (System.nanoTime() - begin));
    }
}
