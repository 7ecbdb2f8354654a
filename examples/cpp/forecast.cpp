// Forecast without Python: forecast PACKAGE LIBRARY < prices
// Input, one line per day: the date as days since 1970-01-01, then the price of each symbol, nan if it is missing.
// Output, one line per horizon and symbol: both indices, from 0, then the quantiles of the log-return.
#include <ATen/ATen.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>
#include <iostream>
#include <sstream>

int main(int argc, char** argv) {
  if (argc != 3 || !dlopen(argv[2], RTLD_NOW)) {  // the library registers the operators
    std::fprintf(stderr, "%s\n", argc != 3 ? "usage: forecast PACKAGE LIBRARY < prices" : dlerror());
    return 2;
  }
  std::vector<double> prices;
  std::vector<int64_t> days;
  for (std::string line, price; std::getline(std::cin, line);) {
    std::istringstream fields(line);
    for (fields >> days.emplace_back(); fields >> price;) prices.push_back(std::stod(price));
  }
  const int64_t T = days.size(), N = T ? prices.size() / T : 0;
  torch::inductor::AOTIModelPackageLoader model(argv[1]);
  const auto quantiles = model.run({at::tensor(prices).view({1, T, N}), at::tensor(days).view({1, T})})[0][0];
  for (int64_t h = 0; h < quantiles.size(0); ++h)
    for (int64_t n = 0; n < N; ++n) {
      std::printf("%ld %ld", h, n);
      for (int64_t q = 0; q < quantiles.size(2); ++q) std::printf(" %.17g", quantiles[h][n][q].item<double>());
      std::printf("\n");
    }
}
