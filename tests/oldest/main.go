// The programs of a control plane of an older Kubernetes in one, by the name that comes first. What is of no version,
// etcd and certificates, the newer plane beside it does.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	manager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

func main() {
	self, err := os.Executable()
	if err != nil || len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "give the name of a program and its flags", err)
		os.Exit(2)
	}
	os.Args = os.Args[1:]
	switch os.Args[0] {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(manager.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	default:
		os.Exit(passOn(filepath.Join(filepath.Dir(self), "newer")))
	}
}

// A child and no exec, so that a process is known by the program that it was started as.
func passOn(newer string) int {
	child := exec.Command(newer, os.Args...)
	child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	if err := child.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	go func() {
		for signal := range asked {
			_ = child.Process.Signal(signal)
		}
	}()
	_ = child.Wait()
	return child.ProcessState.ExitCode()
}
