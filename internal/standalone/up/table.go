package up

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// acceptTable is the Accept header that requests objects as a table, which is what kubectl prints.
const acceptTable = "application/json;as=Table;v=v1;g=meta.k8s.io"

// printTable prints a command, and the table that the command would print.
func (d *demo) printTable(ctx context.Context, command string, config *rest.Config, path string) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("creating a client: %w", err)
	}
	response, err := client.RESTClient().Get().AbsPath(path).SetHeader("Accept", acceptTable).DoRaw(ctx)
	if err != nil {
		return fmt.Errorf("running %q: %w", command, err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(response, table); err != nil {
		return fmt.Errorf("decoding the response of %q: %w", command, err)
	}
	fmt.Fprintf(d.out, "\n$ %s\n", command)
	if len(table.Rows) == 0 {
		fmt.Fprintln(d.out, "No resources found")
		return nil
	}
	if err := printers.NewTablePrinter(printers.PrintOptions{}).PrintObj(table, d.out); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
