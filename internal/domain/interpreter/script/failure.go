package script

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// maxMessage is the maximum length of an error message, in bytes.
const maxMessage = 1000

// placedError is an error at a place in a script.
type placedError struct {
	// place is empty or ends with ": ".
	place string
	cause error
}

func (p *placedError) Error() string { return p.place + p.cause.Error() }

func (p *placedError) Unwrap() error { return p.cause }

// explain returns gopher-lua's error for the author of the script.
func explain(err error) error {
	var failure *lua.ApiError
	if !errors.As(err, &failure) {
		return err
	}
	text, isText := failure.Object.(lua.LString)
	if !isText {
		return fmt.Errorf("the script raised an error that is a %s, not a string", failure.Object.Type())
	}
	place, message := cutPlace(string(text))
	return &placedError{place: place, cause: errors.New(clearMessages.Replace(shorten(message)))}
}

// clearMessages replaces parts of gopher-lua's messages by Lua's usual text.
var clearMessages = strings.NewReplacer(
	"index a non-table object(nil)", "index a nil value",
	"call a non-function object", "call a value that is not a function",
)

var placePattern = regexp.MustCompile(`^(` + scriptSource + `|` + moduleSource + `[^:\n]+):(\d+): ?`)

// cutPlace splits "script:3: message" into "line 3: " and "message".
func cutPlace(text string) (place, message string) {
	match := placePattern.FindStringSubmatch(text)
	if match == nil {
		return "", strings.TrimSpace(text)
	}
	place = "line " + match[2] + ": "
	if match[1] != scriptSource {
		place = match[1] + ", " + place
	}
	return place, text[len(match[0]):]
}

func shorten(message string) string {
	message = strings.ToValidUTF8(message, "�")
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}
