package stdlib

import (
	"fmt"
	"math"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// directive is one element of a format, such as %-5.1f.
type directive struct {
	flags            string
	width, precision int // precision is -1 if there is none
	verb             byte
}

// maxDirective is the maximum length of the text of a formatted number: a number of 309 digits with
// 99 digits after the point.
const maxDirective = 512

// stringFormat is format(format, …). As in gopher-lua, %s accepts values of all types. (Lua 5.1
// accepts only strings and numbers.)
func stringFormat(state *lua.LState) int {
	host, format := HostOf(state), checkString(state, 1)
	host.Step(1 + len(format))
	result := text{host: host}
	result.reserve(len(format))
	argument := 1
	for i := 0; i < len(format); {
		literal := strings.IndexByte(format[i:], '%')
		if literal < 0 {
			literal = len(format) - i
		}
		result.write(format[i : i+literal])
		if i += literal; i == len(format) {
			break
		}
		if i++; i < len(format) && format[i] == '%' {
			result.writeByte('%')
			i++
			continue
		}
		var parsed directive
		parsed, i = parseDirective(state, format, i)
		argument++
		parsed.write(state, &result, argument)
	}
	state.Push(lua.LString(result.finish()))
	return 1
}

// parseDirective parses the directive at offset i, after its %. It returns the offset after it.
func parseDirective(state *lua.LState, format string, i int) (directive, int) {
	d := directive{precision: -1}
	start := i
	for i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0 {
		i++
	}
	d.flags = format[start:i]
	if len(d.flags) > 5 {
		state.RaiseError("invalid format (repeated flags)")
	}
	d.width, i = parseTwoDigits(format, i)
	if i < len(format) && format[i] == '.' {
		d.precision, i = parseTwoDigits(format, i+1)
	}
	if i < len(format) && format[i] >= '0' && format[i] <= '9' {
		state.RaiseError("invalid format (width or precision too long)")
	}
	if i == len(format) {
		state.RaiseError("invalid option '%%' to 'format' (the format ends in a directive)")
	}
	d.verb = format[i]
	return d, i + 1
}

// parseTwoDigits parses a number of up to two digits. It returns 0 if there is none.
func parseTwoDigits(format string, i int) (number, end int) {
	for end = i; end < len(format) && end < i+2 && format[end] >= '0' && format[end] <= '9'; end++ {
		number = number*10 + int(format[end]-'0')
	}
	return number, end
}

// write formats the argument with the number n.
func (d directive) write(state *lua.LState, result *text, n int) {
	switch d.verb {
	case 'c':
		d.writePadded(result, string([]byte{byte(checkInteger(state, n))}))
	case 'd', 'i':
		d.writeNumber(result, int64Of(checkNumber(state, n)), 'd')
	case 'u':
		d.writeUnsigned(result, checkNumber(state, n), 'd')
	case 'o', 'x', 'X':
		d.writeUnsigned(result, checkNumber(state, n), d.verb)
	case 'e', 'E', 'f', 'g', 'G':
		d.writeFloat(result, checkNumber(state, n))
	case 'q':
		writeQuoted(result, checkString(state, n))
	case 's':
		s := toString(result.host, checkAny(state, n))
		if d.precision >= 0 && d.precision < len(s) {
			s = s[:d.precision]
		}
		d.writePadded(result, s)
	default:
		state.RaiseError("invalid option '%%%c' to 'format'", d.verb)
	}
}

func int64Of(number float64) int64 {
	switch {
	case math.IsNaN(number):
		return math.MinInt64
	case number >= math.MaxInt64:
		return math.MaxInt64
	case number <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(number)
	}
}

// uint64Of converts a number as C does: a negative number becomes its two's complement.
func uint64Of(number float64) uint64 {
	if number >= math.MaxInt64 && number < math.MaxUint64 {
		return uint64(number)
	}
	return uint64(int64Of(number))
}

// writeUnsigned formats a number without a sign.
func (d directive) writeUnsigned(result *text, number float64, verb byte) {
	d.flags = strings.NewReplacer("+", "", " ", "").Replace(d.flags)
	d.writeNumber(result, uint64Of(number), verb)
}

// writeNumber formats a number with the functions of Go, which agree with C for these verbs.
func (d directive) writeNumber(result *text, number any, verb byte) {
	result.host.Allocate(maxDirective)
	layout := "%" + d.flags
	if d.width > 0 {
		layout += fmt.Sprint(d.width)
	}
	if d.precision >= 0 {
		layout += fmt.Sprint(".", d.precision)
	}
	result.write(fmt.Sprintf(layout+string(rune(verb)), number))
}

func (d directive) writeFloat(result *text, number float64) {
	if math.IsInf(number, 0) || math.IsNaN(number) {
		d.writePadded(result, d.sign(number)+map[bool]string{true: "nan", false: "inf"}[math.IsNaN(number)])
		return
	}
	if d.precision < 0 {
		d.precision = 6
	}
	d.writeNumber(result, number, d.verb)
}

// sign returns the sign of an infinity, with the flags for signs.
func (d directive) sign(number float64) string {
	switch {
	case math.IsInf(number, -1):
		return "-"
	case strings.Contains(d.flags, "+"):
		return "+"
	case strings.Contains(d.flags, " "):
		return " "
	default:
		return ""
	}
}

// writePadded writes a string with the width of the directive, in bytes.
func (d directive) writePadded(result *text, s string) {
	left := strings.Contains(d.flags, "-")
	if !left {
		result.pad(d.width - len(s))
	}
	result.write(s)
	if left {
		result.pad(d.width - len(s))
	}
}

// writeQuoted writes a string as a literal of Lua.
func writeQuoted(result *text, s string) {
	result.host.Step(len(s))
	result.writeByte('"')
	for i := range len(s) {
		switch char := s[i]; char {
		case '"', '\\', '\n':
			result.writeByte('\\')
			result.writeByte(char)
		case '\r':
			result.write(`\r`)
		case 0:
			result.write(`\000`)
		default:
			result.writeByte(char)
		}
	}
	result.writeByte('"')
}
