// Package english answers: in which language does the program speak? In one.
//
// The commands of kubectl would translate a sentence here and there by the locale of
// the user, in the midst of ours. For that they read their whole catalogue at each
// start, which takes longer than most commands.
package english

import "k8s.io/kubectl/pkg/util/i18n"

// Packages of kubectl look their first sentence up while they are initialised, when
// this is done already: it needs less than they do.
var _ = i18n.SetLoadTranslationsFunc(func() error { return nil })
