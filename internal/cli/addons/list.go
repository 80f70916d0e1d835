package addons

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/install"
)

// States of an addon.
const (
	stateEnabled   = "enabled"
	stateDisabled  = "disabled"
	stateUnhealthy = "unhealthy"
	stateUnknown   = "unknown"
)

func newList(program *command.Program) *cobra.Command {
	s := &session{program: program}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the addons with their state",
		Long: `List the addons with their state.

The state is disabled without a Deployment, unhealthy if replicas are not ready, else
enabled. It is unknown if it cannot be read, or if --cluster is missing.`,
		Example: program.Examples(`
			# List the addons, with the estimator of the member "east"
			{{program}} addons list -C east`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := s.connectHost(); err != nil {
				return err
			}
			rows := [][]string{{"ADDON NAME", "STATUS"}}
			for _, row := range addons() {
				state, err := s.state(cmd.Context(), row)
				if err != nil {
					program.Messagef("%s: %v", row.name, err)
				}
				rows = append(rows, []string{row.name, state})
			}
			return printBordered(program.Out, rows)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	s.addFlags(cmd)
	return cmd
}

// state returns the addon's state. If it returns an error, the state is unknown.
func (s *session) state(ctx context.Context, row addon) (string, error) {
	name := row.deployment(s)
	if name == "" {
		return stateUnknown, nil
	}
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	err := s.host.Get(ctx, client.ObjectKey{Namespace: s.hostFlags.Namespace, Name: name}, deployment)
	switch {
	case apierrors.IsNotFound(err):
		return stateDisabled, nil
	case err != nil:
		return stateUnknown, fmt.Errorf("reading Deployment %s/%s of %s: %w", s.hostFlags.Namespace, name, hostName, err)
	case !install.IsReady(deployment):
		return stateUnhealthy, nil
	case len(row.apiServices) == 0:
		return stateEnabled, nil
	}
	return s.apiServicesState(ctx, row.apiServices)
}

// apiServicesState returns the state of an addon whose Deployment is ready.
func (s *session) apiServicesState(ctx context.Context, names []string) (string, error) {
	if err := s.connectKarmada(ctx); err != nil {
		return stateUnknown, err
	}
	for _, name := range names {
		service := &unstructured.Unstructured{}
		service.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiregistration.k8s.io", Version: "v1", Kind: "APIService"})
		err := s.karmada.Get(ctx, client.ObjectKey{Name: name}, service)
		switch {
		case apierrors.IsNotFound(err):
			return stateDisabled, nil
		case err != nil:
			return stateUnknown, fmt.Errorf("reading APIService %s of %s: %w", name, karmadaName, err)
		case !isAvailable(service):
			return stateUnhealthy, nil
		}
	}
	return stateEnabled, nil
}

// isAvailable reports whether the APIService's Available condition is True.
func isAvailable(service *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(service.Object, "status", "conditions")
	for _, each := range conditions {
		if condition, ok := each.(map[string]any); ok && condition["type"] == "Available" {
			return condition["status"] == "True"
		}
	}
	return false
}

// printBordered prints a table with borders. The first row is the header.
func printBordered(out io.Writer, rows [][]string) error {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	var border, text strings.Builder
	for _, width := range widths {
		border.WriteString("+" + strings.Repeat("-", width+2))
	}
	border.WriteString("+\n")
	text.WriteString(border.String())
	for n, row := range rows {
		for i, cell := range row {
			fmt.Fprintf(&text, "| %-*s ", widths[i], cell)
		}
		text.WriteString("|\n")
		if n == 0 {
			text.WriteString(border.String())
		}
	}
	text.WriteString(border.String())
	if _, err := io.WriteString(out, text.String()); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
