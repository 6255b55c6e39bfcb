// Prints code, name and category (KIP-1050) of every error, as the classes of the Java client's exceptions say it.

import org.apache.kafka.common.errors.ApplicationRecoverableException;
import org.apache.kafka.common.errors.InvalidConfigurationException;
import org.apache.kafka.common.errors.RefreshRetriableException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TransactionAbortableException;
import org.apache.kafka.common.protocol.Errors;

public class ErrorProbe {
    public static void main(String[] arguments) {
        for (Errors error : Errors.values()) {
            if (error.exception() != null) {
                System.out.println(error.code() + " " + error.name() + " " + category(error.exception()));
            }
        }
    }

    static String category(Exception error) {
        if (error instanceof RefreshRetriableException) {
            return "refresh-retriable";
        } else if (error instanceof RetriableException) {
            return "retriable";
        } else if (error instanceof TransactionAbortableException) {
            return "abortable";
        } else if (error instanceof ApplicationRecoverableException) {
            return "application-recoverable";
        } else if (error instanceof InvalidConfigurationException) {
            return "invalid-configuration";
        }
        return "none";
    }
}
