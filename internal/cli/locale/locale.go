// Package locale disables the translations of kubectl.
//
// The commands of kubectl would translate some of their messages to the language of the user, but
// all other messages are in English. Also, loading the translations at each start takes longer
// than most commands.
package locale

import "k8s.io/kubectl/pkg/util/i18n"

// The packages of kubectl translate their first text during their initialization. Go initializes
// this variable earlier, because this package depends on fewer packages.
var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
