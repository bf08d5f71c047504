package proofgate

// reader reads an untrusted JSON object member by member and keeps the first fault, with its place.
type reader struct {
	code    string
	place   string
	members object
	fault   **SigningError
}

func newReader(value any, code, place string) *reader {
	var fault *SigningError
	return (&reader{code: code, place: place, fault: &fault}).of(value)
}

func (r *reader) of(value any) *reader {
	members, isObject := value.(object)
	r.members = members
	if !isObject {
		r.fail("must be an object")
	}
	return r
}

func (r *reader) fail(problem string) {
	if *r.fault == nil {
		*r.fault = failf(r.code, "%s: %s", r.place, problem)
	}
}

func (r *reader) err() error {
	if *r.fault == nil {
		return nil
	}
	return *r.fault
}

func (r *reader) has(name string) bool {
	_, found := r.members[name]
	return found
}

func (r *reader) required(name string, accepts func(string) bool) string {
	value, isText := r.members[name].(string)
	if !r.has(name) {
		r.fail(name + " is missing")
	} else if !isText || !accepts(value) {
		r.fail(name + " is not valid")
	}
	return value
}

func (r *reader) optional(name string, accepts func(string) bool, absent string) string {
	if !r.has(name) {
		return absent
	}
	return r.required(name, accepts)
}

func (r *reader) list(name string) []any {
	values, isList := r.members[name].([]any)
	if !isList {
		r.fail(name + " must be a list")
	}
	return values
}

func (r *reader) items(name string) []*reader {
	var items []*reader
	for _, value := range r.list(name) {
		items = append(items, r.child(name, value))
	}
	return items
}

func (r *reader) child(name string, value any) *reader {
	return (&reader{code: r.code, place: r.place + ": " + name, fault: r.fault}).of(value)
}

// texts reads a list of distinct texts; it is empty when absent.
func (r *reader) texts(name string, accepts func(string) bool) []string {
	if !r.has(name) {
		return nil
	}
	var texts []string
	for _, value := range r.list(name) {
		text, isText := value.(string)
		if !isText || !accepts(text) || contains(texts, text) {
			r.fail(name + " is not valid, or has a value twice")
		}
		texts = append(texts, text)
	}
	return texts
}

func (r *reader) only(known ...string) {
	for name := range r.members {
		if !contains(known, name) {
			r.fail(name + " is not a member of this format")
		}
	}
}
