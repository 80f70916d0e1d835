// Package charts contains the Helm chart of Karmada, which is the description of an installation.
package charts

import "embed"

// Karmada is the chart, in the directory karmada.
//
//go:embed all:karmada
var Karmada embed.FS
