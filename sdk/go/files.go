package proofgate

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const (
	maxKeyBytes      = 16 << 10
	maxStateBytes    = 8 << 20
	enrollmentFormat = "proofgate.enrollment-state/v1"
	brokerFormat     = "proofgate.broker-state/v1"
)

// identity is a key with its profiles and passports; it is replaced as a whole.
type identity struct {
	key       *signingKey
	files     []*profiles
	passports map[string]*passport // by audience; nil: the key signs its own
	expiresAt time.Time            // of an enrolled key, otherwise zero
}

// readIdentity reads the key file and the state beside it, as "proofgate enroll" and "proofgate agent" write them.
func readIdentity(keyFile, profileFile string, now time.Time) (*identity, error) {
	path := settledKeyFile(keyFile)
	data, err := readFile(path, maxKeyBytes, true)
	if err != nil {
		return nil, err
	}
	key, err := parseSigningKey(data, keyFile)
	if err != nil {
		return nil, err
	}
	id := &identity{key: key}
	if profileFile != "" {
		if err := id.readProfileFile(profileFile); err != nil {
			return nil, err
		}
	}
	broker, err := readState(path+".broker.json", "broker_state_invalid")
	if err != nil {
		return nil, err
	}
	if broker != nil {
		return id, id.readBrokerState(broker, keyFile)
	}
	if profileFile != "" {
		return id, nil
	}
	enrollment, err := readState(path+".enrollment.json", "enrollment_state_invalid")
	if err != nil {
		return nil, err
	}
	return id, id.readEnrollment(enrollment, keyFile, now)
}

func (id *identity) readProfileFile(path string) error {
	data, err := readFile(path, maxStateBytes/2, false)
	if err != nil {
		return err
	}
	value, err := parseStrictJSON(data)
	if err != nil {
		return failf("profile_invalid", "%s: %s", path, err)
	}
	file, err := readProfiles(value, path)
	id.files = []*profiles{file}
	return err
}

func (id *identity) readBrokerState(state *reader, keyFile string) error {
	state.required("format", func(text string) bool { return text == brokerFormat })
	if state.required("key_thumbprint", isIdentifier) != id.key.thumbprint {
		state.fail("is for another key")
	}
	id.passports = map[string]*passport{}
	for _, item := range state.items("passports") {
		audience := item.required("audience", isIdentifier)
		found := parsePassport(text(item.members["passport"]))
		if found == nil || found.audience != audience || found.holderThumbprint != id.key.thumbprint {
			item.fail("passport is not one for this audience and key")
		}
		if id.passports[audience] == nil {
			id.passports[audience] = found
		}
	}
	if id.files == nil {
		for _, document := range state.list("signing_profiles") {
			file, err := readProfiles(document, keyFile)
			if err != nil {
				return err
			}
			id.files = append(id.files, file)
		}
	}
	return state.err()
}

func (id *identity) readEnrollment(state *reader, keyFile string, now time.Time) error {
	if state == nil || (!state.has("enrolled") && !state.has("attempt")) {
		return failf("enrollment_missing", "%s has no enrollment beside it: run proofgate enroll or give a profile file", keyFile)
	}
	state.required("format", func(text string) bool { return text == enrollmentFormat })
	thumbprint := state.required("key_thumbprint", isBase64urlOf32Bytes)
	if err := state.err(); err != nil {
		return err
	}
	if thumbprint != id.key.thumbprint {
		return failf("enrollment_state_mismatch", "the enrollment beside %s is another key's", keyFile)
	}
	if !state.has("enrolled") {
		return failf("enrollment_pending", "%s is not enrolled yet", keyFile)
	}
	enrolled := state.child("enrolled", state.members["enrolled"])
	derived := enrolled.child("derived_key", enrolled.members["derived_key"])
	derived.required("key_id", isKeyID)
	status := derived.required("status", func(text string) bool {
		return text == "active" || text == "revoked" || text == "expired"
	})
	expiresAt, err := time.Parse(time.RFC3339, text(derived.members["expires_at"]))
	if err != nil {
		derived.fail("expires_at is not valid")
	}
	file := &profiles{
		readCoordinates(derived, enrolled.required("auth_site", isIdentifier)),
		readRoutes(enrolled, "signing_profiles", false),
	}
	if err := state.err(); err != nil {
		return err
	}
	if status == "revoked" {
		return failf("key_revoked", "this key was revoked: enroll a new one")
	}
	if status == "expired" || !now.Before(expiresAt) {
		return keyExpired(keyFile)
	}
	id.files, id.expiresAt = []*profiles{file}, expiresAt
	return nil
}

func keyExpired(keyFile string) error {
	return failf("key_expired", "the key %s has expired: enroll again", keyFile)
}

var pairNumberPattern = regexp.MustCompile(`^[1-9][0-9]{0,14}$`)

// settledKeyFile follows the agent's link once, so that the key and its state match while the agent replaces them:
// key.pem -> .key.pem.current/key.pem, and .key.pem.current -> .key.pem.7
func settledKeyFile(keyFile string) string {
	directory, name := filepath.Dir(keyFile), filepath.Base(keyFile)
	current := "." + name + ".current"
	target, err := os.Readlink(keyFile)
	if err != nil || target != filepath.Join(current, name) {
		return keyFile
	}
	prefix := "." + name + "."
	folder, err := os.Readlink(filepath.Join(directory, current))
	if err != nil || len(folder) < len(prefix) || folder[:len(prefix)] != prefix ||
		!pairNumberPattern.MatchString(folder[len(prefix):]) {
		return keyFile
	}
	return filepath.Join(directory, folder, name)
}

// fileVersions differ when a file was replaced.
type fileVersions [4]struct {
	info  fs.FileInfo
	mtime time.Time
	size  int64
}

func versionsOf(keyFile, profileFile string) fileVersions {
	var versions fileVersions
	for i, path := range []string{keyFile, keyFile + ".enrollment.json", keyFile + ".broker.json", profileFile} {
		if info, err := os.Stat(path); path != "" && err == nil {
			versions[i].info, versions[i].mtime, versions[i].size = info, info.ModTime(), info.Size()
		}
	}
	return versions
}

func (v fileVersions) equal(other fileVersions) bool {
	for i := range v {
		if (v[i].info == nil) != (other[i].info == nil) {
			return false
		}
		isSame := v[i].info == nil || os.SameFile(v[i].info, other[i].info)
		if !isSame || !v[i].mtime.Equal(other[i].mtime) || v[i].size != other[i].size {
			return false
		}
	}
	return true
}

func readFile(path string, maxBytes int64, isSecret bool) ([]byte, error) {
	// Without O_NONBLOCK, opening a FIFO would wait for a writer.
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR):
		return nil, failf("file_not_found", "%s does not exist", path)
	case err != nil:
		return nil, failf("file_unreadable", "%s cannot be read", path)
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, failf("file_unreadable", "%s cannot be read", path)
	case info.IsDir():
		return nil, failf("file_is_directory", "%s is a directory", path)
	case !info.Mode().IsRegular():
		return nil, failf("file_not_regular", "%s is not a regular file", path)
	case isSecret && info.Mode().Perm()&0o077 != 0:
		return nil, failf("file_permissions", "%s has mode %04o: only its owner may have access (chmod 600)", path, info.Mode().Perm())
	}
	data, err := io.ReadAll(io.LimitReader(file, maxBytes+1))
	if err != nil {
		return nil, failf("file_unreadable", "%s cannot be read", path)
	}
	if int64(len(data)) > maxBytes {
		return nil, failf("file_too_large", "%s is larger than %d bytes", path, maxBytes)
	}
	return data, nil
}

// readState returns nil without a file.
func readState(path, code string) (*reader, error) {
	data, err := readFile(path, maxStateBytes, true)
	var failure *SigningError
	if errors.As(err, &failure) && failure.Code == "file_not_found" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value, err := parseStrictJSON(data)
	if err != nil {
		return nil, failf(code, "%s: %s", path, err)
	}
	state := newReader(value, code, path)
	return state, state.err()
}
