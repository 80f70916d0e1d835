package script

import "karmada.io/karmada/internal/domain/interpreter/script/guard"

// Check returns an error if the text is not a valid script within the default limits. The error
// contains the line. It does not run the script.
func Check(text string) error {
	_, err := guard.Compile(text, scriptSource, Limits{}.withDefaults().Text)
	return err
}
