package example.proofgate;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFileAttributes;
import java.nio.file.attribute.PosixFilePermission;
import java.util.Arrays;
import java.util.EnumSet;
import java.util.List;
import java.util.Objects;
import java.util.Set;

/** Reads a key file and what is beside it. */
final class KeyFiles {
    static final int MAX_KEY_BYTES = 16 << 10;
    static final int MAX_STATE_BYTES = 8 << 20;

    private static final Set<PosixFilePermission> OF_OTHERS = EnumSet.complementOf(EnumSet.of(
        PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE));

    private KeyFiles() {}

    /** Differs when a file was replaced. A file that cannot be seen is null. */
    record Version(Object file, FileTime modifiedAt, long size) {}

    static List<Version> versionsOf(Path keyFile, Path profileFile) {
        return Arrays.asList(
            versionOf(keyFile),
            versionOf(beside(keyFile, ".enrollment.json")),
            versionOf(beside(keyFile, ".broker.json")),
            profileFile == null ? null : versionOf(profileFile));
    }

    private static Version versionOf(Path path) {
        try {
            BasicFileAttributes found = Files.readAttributes(path, BasicFileAttributes.class);
            return new Version(found.fileKey(), found.lastModifiedTime(), found.size());
        } catch (IOException invisible) {
            return null;
        }
    }

    static Path beside(Path keyFile, String ending) {
        return keyFile.resolveSibling(keyFile.getFileName() + ending);
    }

    /**
     * Follows the agent's link once, so that the key and its state match while the agent replaces them: key.pem →
     * .key.pem.current/key.pem, and .key.pem.current → .key.pem.7
     */
    static Path settled(Path keyFile) {
        if (keyFile.getFileName() == null) return keyFile;
        String name = keyFile.getFileName().toString();
        Path current = Path.of("." + name + ".current");
        try {
            if (!Files.readSymbolicLink(keyFile).equals(current.resolve(name))) return keyFile;
            Path pair = Files.readSymbolicLink(keyFile.resolveSibling(current));
            String prefix = "." + name + ".";
            boolean isPair = pair.toString().startsWith(prefix)
                && pair.toString().substring(prefix.length()).matches("[1-9][0-9]{0,14}");
            return isPair ? keyFile.resolveSibling(pair).resolve(name) : keyFile;
        } catch (IOException | UnsupportedOperationException notLinked) {
            return keyFile;
        }
    }

    static byte[] read(Path path, int maxBytes, boolean isSecret) throws SigningException {
        try {
            // Java has no fstat: the same file before and after is the one that was read.
            for (int attempt = 0; attempt < 3; attempt++) {
                Object before = checked(path, isSecret);
                byte[] data;
                try (InputStream file = Files.newInputStream(path)) {
                    data = file.readNBytes(maxBytes + 1);
                }
                if (!Objects.equals(before, checked(path, isSecret))) continue;
                if (data.length <= maxBytes) return data;
                throw new SigningException("file_too_large", path + " is larger than " + maxBytes + " bytes");
            }
            throw new SigningException("file_unreadable", path + " changes while it is read");
        } catch (SigningException error) {
            throw error;
        } catch (IOException error) {
            boolean isMissing = error instanceof NoSuchFileException
                || (error instanceof FileSystemException other && "Not a directory".equals(other.getReason()));
            if (isMissing) throw new SigningException("file_not_found", path + " does not exist");
            throw new SigningException("file_unreadable", path + " cannot be read");
        }
    }

    /** Returns the identity of a file that may be read. */
    private static Object checked(Path path, boolean isSecret) throws IOException {
        BasicFileAttributes found = Files.readAttributes(path, BasicFileAttributes.class);
        if (found.isDirectory()) throw new SigningException("file_is_directory", path + " is a directory");
        // Opening a FIFO would wait for a writer.
        if (!found.isRegularFile()) throw new SigningException("file_not_regular", path + " is not a regular file");
        if (isSecret) checkPermissions(path);
        return found.fileKey();
    }

    private static void checkPermissions(Path path) throws IOException {
        try {
            Set<PosixFilePermission> given = Files.readAttributes(path, PosixFileAttributes.class).permissions();
            if (given.stream().noneMatch(OF_OTHERS::contains)) return;
            throw new SigningException(
                "file_permissions", path + " may be used by others: only its owner may have access (chmod 600)");
        } catch (UnsupportedOperationException notPosix) {
            throw new SigningException("file_permissions", path + " is on a file system without POSIX permissions");
        }
    }

    /** Returns null without a file. */
    static Reader readState(Path path, String code) throws SigningException {
        byte[] data;
        try {
            data = read(path, MAX_STATE_BYTES, true);
        } catch (SigningException error) {
            if (error.code().equals("file_not_found")) return null;
            throw error;
        }
        return new Reader(parse(data, path, code), code, path.toString());
    }

    static Object parse(byte[] data, Path path, String code) throws SigningException {
        try {
            return StrictJson.parse(data);
        } catch (StrictJson.Invalid error) {
            throw new SigningException(code, path + ": " + error.getMessage());
        }
    }
}
