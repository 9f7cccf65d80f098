/** Prints READY, then waits for a line of input and uses no CPU. */
public class Idle {
    public static void main(String[] args) throws Exception {
        System.out.println("READY");
        System.in.read();
        System.out.println("END");
    }
}
