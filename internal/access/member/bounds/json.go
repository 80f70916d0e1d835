package bounds

// values follows JSON text and counts what takes memory when the text is decoded:
// objects, arrays, and elements of arrays that are neither. What looks like JSON in a
// string is text and does not count. The zero value is at the beginning of a text.
//
// For text that is no JSON the count says nothing, but then decoding ends in an error.
type values struct {
	count int64
	// open holds the opening byte of each object and array that has not ended.
	open             []byte
	quoted, escaping bool
	// last is the last byte outside of strings that is no space.
	last byte
}

// read follows text to its end, or to the end of an object or array that is in no other
// one. It returns how many bytes it followed, and whether such a value ended with them.
func (v *values) read(text []byte) (followed int, ended bool) {
	for i, b := range text {
		if v.quoted {
			v.quoted = b != '"' || v.escaping
			v.escaping = b == '\\' && !v.escaping
			continue
		}
		switch b {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			v.quoted = true
		case '{', '[':
			v.count++
			v.open = append(v.open, b)
		case ',':
			v.endElement()
		case '}', ']':
			v.endElement()
			if v.close(); len(v.open) == 0 {
				v.last = b
				return i + 1, true
			}
		}
		v.last = b
	}
	return len(text), false
}

// endElement counts the element of an array that ended, unless it is an object or an
// array, which counted when it began.
func (v *values) endElement() {
	if len(v.open) == 0 || v.open[len(v.open)-1] != '[' {
		return
	}
	switch v.last {
	case '[', ',', '}', ']':
	default:
		v.count++
	}
}

func (v *values) close() {
	if len(v.open) > 0 {
		v.open = v.open[:len(v.open)-1]
	}
}
