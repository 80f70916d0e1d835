package bounds

// valueCounter scans JSON text and counts the values that take memory when the text is decoded:
// objects, arrays, and elements of arrays that are neither. JSON inside a string is text and
// does not count. The zero value is at the beginning of a text.
//
// For invalid JSON the count is meaningless, but then decoding returns an error.
type valueCounter struct {
	count int64
	// openBrackets holds the opening byte of each object and array that has not ended.
	openBrackets        []byte
	inString, isEscaped bool
	// lastByte is the last byte outside of strings that is not a space.
	lastByte byte
}

// scan scans text to its end, or to the end of a top-level object or array. It returns the
// number of scanned bytes, and whether such a value ended with them.
func (v *valueCounter) scan(text []byte) (followed int, ended bool) {
	for i, b := range text {
		if v.inString {
			v.inString = b != '"' || v.isEscaped
			v.isEscaped = b == '\\' && !v.isEscaped
			continue
		}
		switch b {
		case ' ', '\t', '\n', '\r':
			continue
		case '"':
			v.inString = true
		case '{', '[':
			v.count++
			v.openBrackets = append(v.openBrackets, b)
		case ',':
			v.endElement()
		case '}', ']':
			v.endElement()
			if v.closeBracket(); len(v.openBrackets) == 0 {
				v.lastByte = b
				return i + 1, true
			}
		}
		v.lastByte = b
	}
	return len(text), false
}

// endElement counts the element of an array that ended. An object or array was counted when it
// began.
func (v *valueCounter) endElement() {
	if len(v.openBrackets) == 0 || v.openBrackets[len(v.openBrackets)-1] != '[' {
		return
	}
	switch v.lastByte {
	case '[', ',', '}', ']':
	default:
		v.count++
	}
}

func (v *valueCounter) closeBracket() {
	if len(v.openBrackets) > 0 {
		v.openBrackets = v.openBrackets[:len(v.openBrackets)-1]
	}
}
