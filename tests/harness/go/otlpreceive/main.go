// otlpreceive PORT DIRECTORY [BYTES]: an OTLP receiver for profiles over gRPC, on the official decoder, which takes messages
// of so many bytes (4 MiB). Each request becomes a file of the directory; says READY. While there is a file "away" in it,
// nothing is taken.
package main

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"

	"go.opentelemetry.io/collector/pdata/pprofile/pprofileotlp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

type receiver struct {
	pprofileotlp.UnimplementedGRPCServer
	directory string
	n         atomic.Int64
}

func (r *receiver) Export(_ context.Context, request pprofileotlp.ExportRequest) (pprofileotlp.ExportResponse, error) {
	if _, err := os.Stat(filepath.Join(r.directory, "away")); err == nil {
		return pprofileotlp.NewExportResponse(), status.Error(codes.Unavailable, "the disk is away")
	}
	bytes, err := request.MarshalProto()
	if err == nil {
		path := filepath.Join(r.directory, fmt.Sprintf("%d.otlp", r.n.Add(1)))
		err = os.WriteFile(path+".tmp", bytes, 0o644)
		if err == nil {
			err = os.Rename(path+".tmp", path)
		}
	}
	if err != nil {
		return pprofileotlp.NewExportResponse(), status.Error(codes.Internal, err.Error())
	}
	return pprofileotlp.NewExportResponse(), nil
}

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	most := 4 << 20
	if len(os.Args) > 3 {
		if most, err = strconv.Atoi(os.Args[3]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(most))
	pprofileotlp.RegisterGRPCServer(server, &receiver{directory: os.Args[2]})
	fmt.Println("READY")
	_ = server.Serve(listener)
}
