package bounds

// valueCounter scans JSON text and counts the values that take memory when the text is decoded:
// objects, arrays, and array elements that are neither objects nor arrays. It does not count JSON
// inside a string. The zero value is ready to scan the beginning of a text.
//
// For invalid JSON the count has no meaning, but then decoding returns an error.
type valueCounter struct {
	count int64
	// openBrackets contains the opening bytes of the objects and arrays that have not ended.
	openBrackets        []byte
	inString, isEscaped bool
	// lastByte is the last byte that is neither inside a string nor a space.
	lastByte byte
}

// scan scans text up to its end, or up to the end of a top-level object or array. It returns the
// number of scanned bytes, and whether a top-level object or array ended at the last of these
// bytes.
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

// endElement counts an array element that ended. It does not count an element that is an object or
// an array, because those are counted when they begin.
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
