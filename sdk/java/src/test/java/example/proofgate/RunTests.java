package example.proofgate;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;

/** Runs the tests, and prints a line for each. */
final class RunTests {
    public static void main(String[] args) throws Exception {
        for (Object tests : List.of(new SignerTest(), new ClientsTest(), new Http2Test())) {
            Method[] methods = tests.getClass().getDeclaredMethods();
            Arrays.sort(methods, Comparator.comparing(Method::getName));
            for (Method method : methods) {
                if (Modifier.isStatic(method.getModifiers()) || method.isSynthetic()) continue;
                if (args.length > 0 && !method.getName().equals(args[0])) continue;
                try {
                    method.invoke(tests);
                    System.out.println("ok " + method.getName());
                } catch (InvocationTargetException failed) {
                    System.out.println("FAILED " + method.getName());
                    failed.getCause().printStackTrace(System.out);
                }
            }
        }
        // Clients keep threads.
        System.exit(0);
    }
}
