package script

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"karmada.io/karmada/internal/domain/interpreter/script/guard"
)

// The names of sources in the messages of the virtual machine.
const (
	scriptSource = "script"
	moduleSource = "module "
)

// maxMessage is the maximum length of the message of an error, in bytes.
const maxMessage = 1000

// explain returns the error of a run for the author of the script.
func (s *sandbox) explain(err error) error {
	var failure *lua.ApiError
	if !errors.As(err, &failure) {
		return err
	}
	text, isText := failure.Object.(lua.LString)
	if !isText {
		return fmt.Errorf("the script raised an error that is a %s, not a string", failure.Object.Type())
	}
	place, message := placeOf(string(text))
	if s.spent != nil {
		// The script can have changed the message, but not the reason.
		return &placedError{place: place.String(), cause: s.spent}
	}
	if failure.Type == lua.ApiErrorPanic {
		return fmt.Errorf("the virtual machine cannot run the script: %s", shorten(message))
	}
	return &placedError{place: place.String(), cause: errors.New(shorten(s.rephrase(place, message)))}
}

// placedError is an error at a place in a script.
type placedError struct {
	place string
	cause error
}

func (p *placedError) Error() string { return p.place + p.cause.Error() }

func (p *placedError) Unwrap() error { return p.cause }

var placePattern = regexp.MustCompile(`^(` + scriptSource + `|` + moduleSource + `[^:\n]+):(\d+): ?`)

// place is a line of a script or a module. The line is 0 if it is not known.
type place struct {
	source string
	line   int
}

func (p place) String() string {
	switch {
	case p.line == 0:
		return ""
	case p.source == scriptSource:
		return fmt.Sprintf("line %d: ", p.line)
	}
	return fmt.Sprintf("%s, line %d: ", p.source, p.line)
}

// placeOf splits "script:3: message" into its place and "message".
func placeOf(text string) (place, string) {
	match := placePattern.FindStringSubmatch(text)
	if match == nil {
		return place{}, strings.TrimSpace(text)
	}
	line, err := strconv.Atoi(match[2])
	if err != nil {
		return place{}, text
	}
	return place{source: match[1], line: line}, text[len(match[0]):]
}

// textOf returns the text in which a place is.
func (s *sandbox) textOf(p place) string {
	if p.source == scriptSource {
		return s.call.program.text
	}
	if module, ok := s.engine.modules[strings.TrimPrefix(p.source, moduleSource)]; ok {
		return module.text
	}
	return ""
}

func shorten(message string) string {
	message = strings.ToValidUTF8(message, "�")
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// rephrasings replace messages of gopher-lua by the usual ones of Lua.
var rephrasings = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`^cannot perform \w+ operation between (\w+) and (\w+)$`), "attempt to perform arithmetic on a $1 and a $2 value"},
	{regexp.MustCompile(`^attempt to call a non-function object$`), "attempt to call a value that is not a function"},
	{regexp.MustCompile(`^__unm undefined$`), "attempt to negate a value that is not a number"},
	{regexp.MustCompile(`^registry overflow$`), "too many values and local variables at once"},
	{regexp.MustCompile(`^stack overflow$`), fmt.Sprintf("stack overflow: more than %d nested calls", callDepth)},
}

var indexPattern = regexp.MustCompile(`^attempt to index a (?:non-table object\((\w+)\)|(\w+) value) with key '(?s:(.*))'$`)

func (s *sandbox) rephrase(at place, message string) string {
	if match := indexPattern.FindStringSubmatch(message); match != nil {
		name := guard.IndexedName(s.textOf(at), at.line, match[3])
		if name != "" {
			name = " (" + name + ")"
		}
		return fmt.Sprintf("attempt to index a %s value%s with key '%s'", match[1]+match[2], name, match[3])
	}
	for _, r := range rephrasings {
		if r.pattern.MatchString(message) {
			return r.pattern.ReplaceAllString(message, r.text)
		}
	}
	return message
}
