// Package multicall selects the program that the binary `karmada` runs by the name with which it
// is called. So one image contains one binary, and a link to it for each program.
//
// A program that is called by its name has the flags, the help and the exit codes of the program
// that is built alone. Only the options of the called program are created.
package multicall

import (
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"

	"karmada.io/karmada/internal/programs/command"
	"karmada.io/karmada/internal/programs/components"
)

// Program is one program of the binary.
type Program struct {
	// Name is the name of the executable.
	Name string
	// Main runs the program with the process's arguments, and returns its exit code. It may also exit the
	// process.
	Main func() int
}

// Programs returns the programs of the binary: the components of Karmada, and the servers of
// Kubernetes and etcd that a control plane needs.
func Programs() []Program {
	var all []Program
	for _, component := range components.Programs() {
		all = append(all, Program{component.Name, func() int { return runComponent(component) }})
	}
	return append(all,
		Program{karmadaAPIServerName, runKarmadaAPIServer},
		Program{"kube-apiserver", runKubeAPIServer},
		Program{"kube-controller-manager", runKubeControllerManager},
		Program{"etcd", runEtcd},
	)
}

// Find returns the program with the name of an executable, such as /bin/karmada-webhook. It returns
// nil if there is none.
func Find(programs []Program, executable string) *Program {
	name := filepath.Base(executable)
	for i := range programs {
		if programs[i].Name == name {
			return &programs[i]
		}
	}
	return nil
}

// runEtcd runs etcd, which exits the process itself if it fails.
func runEtcd() int {
	etcdmain.Main(os.Args)
	return command.Success
}
