// Runs Kafka's command line tools one after another in one process, because starting a process for each takes seconds.
//
// A line on the standard input is a class and its arguments, separated by tabs; before them may stand `stdin:` and the
// tool's own standard input in base64. The answer is a line with the exit code and the sizes of both outputs, followed
// by these. What a tool would do when its process ends is done when the tool ends.

import java.io.BufferedReader;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.common.utils.Exit;

public class ToolRunner {
    // The log keeps the stream that it finds first, so the streams stay and what is behind them changes.
    static class Switch extends OutputStream {
        private ByteArrayOutputStream target = new ByteArrayOutputStream();

        // What was written since the last time. Threads that a tool left behind may write on meanwhile.
        synchronized byte[] take() {
            byte[] written = target.toByteArray();
            target.reset();
            return written;
        }

        @Override
        public synchronized void write(int one) {
            target.write(one);
        }

        @Override
        public synchronized void write(byte[] data, int start, int size) {
            target.write(data, start, size);
        }
    }

    static volatile CompletableFuture<Integer> ended;
    static final List<Runnable> HOOKS = Collections.synchronizedList(new ArrayList<>());

    public static void main(String[] none) throws Exception {
        PrintStream answers = System.out;
        Switch out = new Switch();
        Switch err = new Switch();
        System.setOut(new PrintStream(out, true));
        System.setErr(new PrintStream(err, true));
        Exit.setExitProcedure((code, message) -> endHere(code));
        Exit.setHaltProcedure((code, message) -> endHere(code));
        Exit.setShutdownHookAdder((name, hook) -> HOOKS.add(hook));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t", -1);
            byte[] input = {};
            if (words[0].startsWith("stdin:")) {
                input = Base64.getDecoder().decode(words[0].substring("stdin:".length()));
                words = Arrays.copyOfRange(words, 1, words.length);
            }
            System.setIn(new ByteArrayInputStream(input));
            out.take();
            err.take();
            int code = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            System.out.flush();
            System.err.flush();
            byte[] ofOut = out.take();
            byte[] ofErr = err.take();
            answers.println(code + " " + ofOut.length + " " + ofErr.length);
            answers.write(ofOut);
            answers.write(ofErr);
            answers.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    // Nothing behind the call of exit may run: the thread stays where it is.
    static void endHere(int code) {
        ended.complete(code);
        while (true) {
            try {
                Thread.sleep(Long.MAX_VALUE);
            } catch (InterruptedException again) {
                continue;
            }
        }
    }

    static int run(String name, String[] arguments) throws Exception {
        CompletableFuture<Integer> end = new CompletableFuture<>();
        ended = end;
        Thread thread = new Thread(() -> {
            try {
                Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
                end.complete(0);
            } catch (Throwable wrapped) {
                Throwable error = wrapped.getCause() == null ? wrapped : wrapped.getCause();
                System.err.print("Exception in thread \"main\" ");
                error.printStackTrace();
                end.complete(1);
            }
        });
        thread.setDaemon(true);
        thread.start();
        int code = end.get(90, TimeUnit.SECONDS);
        for (Runnable hook : new ArrayList<>(HOOKS)) {
            hook.run();
        }
        HOOKS.clear();
        return code;
    }
}
