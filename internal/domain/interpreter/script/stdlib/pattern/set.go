package pattern

// set is a set of bytes, as a bit field.
type set [4]uint64

func (s *set) has(char byte) bool {
	return s[char>>6]&(1<<(char&63)) != 0
}

func (s *set) add(char byte) {
	s[char>>6] |= 1 << (char & 63)
}

func (s *set) addAll(other *set) {
	for i := range s {
		s[i] |= other[i]
	}
}

func (s *set) complement() set {
	return set{^s[0], ^s[1], ^s[2], ^s[3]}
}

// classes holds the sets of the character classes by their letters: of %a at 'a', and of its
// complement %A at 'A'. The classes are those of the locale C.
var classes = newClasses()

func newClasses() (sets [256]*set) {
	for letter, contains := range map[byte]func(char byte) bool{
		'a': isLetter,
		'c': func(char byte) bool { return char < 0x20 || char == 0x7f },
		'd': isDigit,
		'l': isLower,
		'p': func(char byte) bool {
			return char > 0x20 && char < 0x7f && !isLetter(char) && !isDigit(char)
		},
		's': func(char byte) bool { return char == ' ' || char >= '\t' && char <= '\r' },
		'u': isUpper,
		'w': func(char byte) bool { return isLetter(char) || isDigit(char) },
		'x': func(char byte) bool {
			return isDigit(char) || char >= 'a' && char <= 'f' || char >= 'A' && char <= 'F'
		},
		'z': func(char byte) bool { return char == 0 },
	} {
		class := &set{}
		for char := range 256 {
			if contains(byte(char)) {
				class.add(byte(char))
			}
		}
		complement := class.complement()
		sets[letter], sets[letter-'a'+'A'] = class, &complement
	}
	return sets
}

func isLower(char byte) bool  { return char >= 'a' && char <= 'z' }
func isUpper(char byte) bool  { return char >= 'A' && char <= 'Z' }
func isLetter(char byte) bool { return isLower(char) || isUpper(char) }
func isDigit(char byte) bool  { return char >= '0' && char <= '9' }

// parseSet parses a set in brackets.
func (c *compiler) parseSet() (*set, error) {
	result := &set{}
	c.position++ // the bracket
	negated := c.position < len(c.text) && c.text[c.position] == '^'
	if negated {
		c.position++
	}
	for first := true; ; first = false {
		if c.position == len(c.text) {
			return nil, errMissingBracket
		}
		if c.text[c.position] == ']' && !first {
			c.position++
			break
		}
		if err := c.parseSetElement(result); err != nil {
			return nil, err
		}
	}
	if negated {
		*result = result.complement()
	}
	return result, nil
}

// parseSetElement adds a character, a range or a class to the set.
func (c *compiler) parseSetElement(result *set) error {
	rest := c.text[c.position:]
	switch {
	case rest[0] == '%':
		if len(rest) == 1 {
			return errMissingBracket
		}
		if class := classes[rest[1]]; class != nil {
			result.addAll(class)
		} else {
			result.add(rest[1])
		}
		c.position += 2
	case len(rest) > 2 && rest[1] == '-' && rest[2] != ']':
		for char := int(rest[0]); char <= int(rest[2]); char++ {
			result.add(byte(char))
		}
		c.position += 3
	default:
		result.add(rest[0])
		c.position++
	}
	return nil
}
