// Package locale disables the translations of kubectl.
//
// The commands of kubectl would translate some of their messages to the language of the
// user, while all other messages are in English. Loading the catalog of translations at
// each start also takes longer than most commands.
package locale

import "k8s.io/kubectl/pkg/util/i18n"

// Packages of kubectl translate their first text during their initialization. This
// variable is initialized earlier because it depends on fewer packages.
var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
